// Which instruction set's matrix product is called.
#include "cinta/backends/cpu/gemm.h"

#include "cinta/backends/cpu/isa.h"

namespace cinta {
namespace {
using Function = void (*)(const Gemm&);
constinit int installed_level = -1;  // ready before the constructors that install
constinit Function installed = nullptr;
}  // namespace

InstallGemm::InstallGemm(int level, Function function) {
  if (level > isa_level() || level < installed_level) return;
  installed_level = level;
  installed = function;
}

void gemm(const Gemm& product) { installed(product); }

}  // namespace cinta
