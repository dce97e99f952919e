// Every kernel row alone under the clock.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cinta::tools {

/// Shapes that rows are called on: those of a BERT's step.
struct RowSizes {
  const char* name;
  int64_t tokens, width, inner, heads, sequence, vocabulary, masked;
};
inline constexpr RowSizes row_sizes[] = {
    {"mini", 2048, 256, 1024, 4, 128, 30522, 320},
    {"base", 1024, 768, 3072, 12, 128, 30522, 160},
    {"large", 8192, 768, 3072, 12, 512, 30522, 640},  // beyond most caches
};

/// Calls one row, always in the same way.
struct RowCase {
  std::string variant;  ///< what is special in it; mostly nothing
  std::function<void()> call;
};
/// The calls hold their tensors, most of them in common.
std::vector<RowCase> row_cases(const RowSizes& sizes);

struct RowsOptions {
  std::vector<std::string> sizes = {"mini", "base"};
  int threads = 0;  ///< 0: as many as by default
  bool json = false;
  std::string plot;  ///< SVG file; none if empty
};
/// Measures and prints. Throws ValueError for a name that `row_sizes` has not.
void bench_rows(const RowsOptions& options);

}  // namespace cinta::tools
