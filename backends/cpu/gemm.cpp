// Which instruction set's matrix product is called.
#include "cinta/backends/cpu/gemm.h"

#include <algorithm>
#include <array>

#include "cinta/backends/cpu/isa.h"

namespace cinta {
namespace {
constexpr size_t most = 8;
struct Entry {
  int level = -1;
  bool (*function)(const Gemm&) = nullptr;
};
constinit std::array<Entry, most> entries{};  // ready before the constructors that install
}  // namespace

InstallGemm::InstallGemm(int level, bool (*function)(const Gemm&)) {
  if (level > isa_level()) return;
  *std::ranges::find(entries, nullptr, &Entry::function) = {level, function};
}

bool gemm_of_level(int level, const Gemm& product) {
  return std::ranges::any_of(entries, [&](const Entry& e) { return e.level == level && e.function(product); });
}

void gemm(const Gemm& product) {
  for (int level = isa_level(); level >= 0; --level)
    if (gemm_of_level(level, product)) return;
}

}  // namespace cinta
