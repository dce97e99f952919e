// Opens this instruction set's namespace and turns its instructions on, until isa_end.h. No `#pragma once`: a header
// and the file that includes it may each use the pair. See isa.h.
#include "cinta/backends/cpu/isa.h"

#ifdef CINTA_ISA_OPEN
#error "isa_begin.h stands below all other includes, after an empty line"
#endif
#define CINTA_ISA_OPEN
#define CINTA_ISA_JOIN(a, b) a##b
#define CINTA_ISA_NAMESPACE(name) CINTA_ISA_JOIN(cpu_, name)

// prfchw: asking for a line to be written. Processors of these levels that do not know it do nothing there.
#if CINTA_ISA_LEVEL == 1
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi2,prfchw"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi2,prfchw")
#endif
#elif CINTA_ISA_LEVEL == 2
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c,bmi2,prfchw"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c,bmi2,prfchw,prefer-vector-width=512")
#endif
#endif

// The formatter does not see that this opens a namespace that stays open.
// clang-format off
namespace cinta::CINTA_ISA_NAMESPACE(CINTA_ISA_NAME) {
using InstallSimd = InstallAtLevel<CINTA_ISA_LEVEL>;
// clang-format on
