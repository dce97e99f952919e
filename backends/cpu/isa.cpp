// What this processor can run, and what the environment allows.
#include "cinta/backends/cpu/isa.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "cinta/backends/library.h"

namespace cinta {
namespace {

std::optional<bool> pretended_wide_xeon;

constexpr std::array names{"baseline", "avx2", "avx512", "avx512_bf16", "amx"};

/// The system lends the memory that tiles of AMX are saved to by name alone: feature 18 of ARCH_REQ_XCOMP_PERM.
bool may_use_amx() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr int request = 0x1023, tile_data = 18;
  return __builtin_cpu_supports("amx-bf16") && syscall(SYS_arch_prctl, request, tile_data) == 0;
#else
  return false;
#endif
}

int processor_level() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();  // this may run before the program's own constructors
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  const bool bf16 = avx512 && __builtin_cpu_supports("avx512bf16");
  const bool amx = bf16 && may_use_amx();
  return amx ? isa_amx : bf16 ? isa_avx512_bf16 : avx512 ? isa_avx512 : avx2 ? isa_avx2 : 0;
#else
  return 0;
#endif
}

/// Whether a core multiplies pairs of bf16 faster than floats. An Emerald Rapids does at half their speed (79, 151 GF/s
/// a core) and leaves the rest to AMX, which a cloud need not lend; a Zen 4 at twice. Of Intel's others none was
/// measured: they are taken to be like it, but for Cooper Lake, which has no AMX.
bool pairs_are_fast() {
#if defined(__x86_64__) || defined(__i386__)
  return !__builtin_cpu_is("intel") || __builtin_cpu_is("cooperlake");
#else
  return false;
#endif
}

/// The level that the environment asks for; names.size() when it names none that exists.
int wanted_level() {
  const char* wanted = std::getenv("CINTA_ISA");
  if (!wanted || !*wanted) return static_cast<int>(names.size()) - 1;
  return static_cast<int>(std::find(names.begin(), names.end(), std::string_view(wanted)) - names.begin());
}

}  // namespace

int isa_level() {
  static const int level = std::min(processor_level(), wanted_level());
  return level;
}

bool multiplies(Dtype dtype) {
  // A level that the environment names is what is run, as tests of all of them need it.
  static const bool bf16_too = isa_level() >= isa_amx || (isa_level() == isa_avx512_bf16 &&
                                                          (wanted_level() == isa_avx512_bf16 || pairs_are_fast()));
  return dtype == Dtype::f32 || (dtype == Dtype::bf16 && bf16_too);
}

bool is_wide_xeon() { return pretended_wide_xeon.value_or(isa_level() >= isa_avx512_bf16 && !pairs_are_fast()); }

void pretend_wide_xeon(std::optional<bool> wide) { pretended_wide_xeon = wide; }

int64_t second_cache_bytes() {
  constexpr int64_t of_zen_3 = 512 << 10, of_zen_4 = 1 << 20, of_a_xeon = 2 << 20;
  if (isa_level() < isa_avx512) return of_zen_3;  // others without AVX-512 may have more, which their cores share
  int64_t bytes = 0;
#ifdef _SC_LEVEL2_CACHE_SIZE
  bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
  return bytes > 0 ? std::clamp(bytes, of_zen_3, of_a_xeon) : of_zen_4;  // the system may not know
}

bool isa_is_capped() { return isa_level() < processor_level(); }

const char* isa_name(int level) { return names[static_cast<size_t>(level)]; }

std::string instruction_set() { return isa_name(isa_level()); }

void check_isa() {
  require(wanted_level() < static_cast<int>(names.size()), "cpu", Where(),
          "the environment variable CINTA_ISA is baseline, avx2, avx512, avx512_bf16 or amx, given '",
          std::getenv("CINTA_ISA"), "'");
}

}  // namespace cinta
