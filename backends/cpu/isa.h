// The instruction sets that backends/cpu/simd is compiled for, and how its kernels get into the table.
// A file there is compiled once per set, with CINTA_ISA_NAME and CINTA_ISA_LEVEL defined by the build. It looks like
//   #include ...everything...
//   #include "cinta/backends/cpu/isa_begin.h"   // opens namespace cinta::cpu_<name> and turns the instructions on
//   void softmax(View y, View x) { ... }
//   const InstallSimd here{kernels::softmax, softmax};
//   #include "cinta/backends/cpu/isa_end.h"
// Only functions written between the two get the instructions. Templates and inline functions of other headers stay
// plain, so that the linker, which keeps one copy of each, can never keep one that this machine cannot run.
#pragma once
#include <optional>

#include "cinta/backends/kernel.h"

#ifndef CINTA_ISA_NAME  // for editors; the build always defines both
#define CINTA_ISA_NAME baseline
#define CINTA_ISA_LEVEL 0
#endif

namespace cinta {

inline constexpr int isa_avx2 = 1, isa_avx512 = 2;
/// The level whose kernels may also use the conversions and products of AVX-512-BF16; they are compiled with those of
/// the level below.
inline constexpr int isa_avx512_bf16 = 3;
/// The level where products of bf16, oneDNN's as well, and large ones of f32 may use the tiles of AMX.
inline constexpr int isa_amx = 4;
/// The highest level that the processor has and the environment variable CINTA_ISA (baseline, avx2, avx512, avx512_bf16
/// or amx) allows.
int isa_level();
/// True iff products of `dtype` have instructions at that level which are worth it: of f32 always, of bf16 from
/// isa_avx512_bf16 on, but for cores that multiply floats faster, to which bf16 is then widened, unless CINTA_ISA names
/// that level.
bool multiplies(Dtype dtype);
/// True iff the level has AVX-512-BF16 on an Intel core that multiplies pairs of bf16 no faster than floats, as an
/// Emerald Rapids: it multiplies two vectors of floats a cycle, and its first cache holds twelve rows that lie 4 KiB
/// apart. A Zen 4 multiplies one, and loses four of them.
bool is_wide_xeon();
/// For tests: what is_wide_xeon() says from now on; without a value, what the processor is.
void pretend_wide_xeon(std::optional<bool> wide);
/// True iff the processor has a higher level.
bool isa_is_capped();
/// Bytes of a core's second-level cache, as the system says where there is AVX-512: 512 KiB to 2 MiB.
int64_t second_cache_bytes();
/// The name of a level.
const char* isa_name(int level);
/// Throws ValueError when CINTA_ISA holds another word.
void check_isa();

/// Puts a function compiled for `level` into the CPU column if this machine can run it.
template <int level>
struct InstallAtLevel {
  template <class Signature>
  InstallAtLevel(Kernel<Signature>& kernel, typename Kernel<Signature>::Function function,
                 FloatTypes floats = all_floats) {
    if (level <= isa_level()) kernel.install(cpu, function, floats, level);
  }
};

}  // namespace cinta
