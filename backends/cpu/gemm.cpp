// Which instruction set's matrix product is called.
#include "cinta/backends/cpu/gemm.h"

#include <array>

#include "cinta/backends/cpu/isa.h"

namespace cinta {
namespace {
constinit std::array<bool (*)(const Gemm&), isa_amx + 1> by_level{};  // ready before the constructors that install
}  // namespace

InstallGemm::InstallGemm(int level, bool (*function)(const Gemm&)) {
  if (level <= isa_level()) by_level[static_cast<size_t>(level)] = function;
}

void gemm(const Gemm& product) {
  for (int level = isa_level(); level >= 0; --level)
    if (const auto function = by_level[static_cast<size_t>(level)]; function && function(product)) return;
}

}  // namespace cinta
