// Every kernel row alone under the clock.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cinta::tools {

/// Shapes that rows are called on.
struct RowSizes {
  int64_t tokens, width, inner, heads, sequence, vocabulary, masked;
};

/// Calls one row, always in the same way.
struct RowCase {
  std::string variant;  ///< what is special in it; mostly nothing
  std::function<void()> call;
};
/// The calls hold their tensors, most of them in common.
std::vector<RowCase> row_cases(const RowSizes& sizes);

struct RowsOptions {
  std::string sizes = "small";
  int threads = 0;  ///< 0: all
  bool json = false;
  std::string plot;  ///< SVG file; none if empty
};
/// Measures and prints.
void bench_rows(const RowsOptions& options);

}  // namespace cinta::tools
