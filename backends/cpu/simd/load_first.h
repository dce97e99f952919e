// The first values of a row as a vector of floats.
#pragma once
#include <algorithm>
#include <cstring>

#include "cinta/backends/cpu/simd/gemm_tile.h"

#include "cinta/backends/cpu/isa_begin.h"
#if CINTA_ISA_LEVEL > 0

/// The first `count` values from `from` on, at most a vector, and zeros; those beyond are not read.
inline Vector load_first(const float* from, int64_t count) {
  typedef Vector Unaligned __attribute__((aligned(4)));
  if (count >= vector_width) [[likely]]
    return *reinterpret_cast<const Unaligned*>(from);
  const int some = static_cast<int>(std::clamp<int64_t>(count, 0, vector_width));
#if CINTA_ISA_LEVEL == 2
  return (Vector)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1 << some) - 1), from);
#else
  const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), exist = _mm256_set1_epi32(some);
  return (Vector)_mm256_maskload_ps(from, _mm256_cmpgt_epi32(exist, places));
#endif
}

/// Half a vector of values of 16 bits, of which `count` are read and the others 0.
inline auto load_first_halves(const void* from, int64_t count) {
  const int some = static_cast<int>(std::clamp<int64_t>(count, 0, vector_width));
#if CINTA_ISA_LEVEL == 2
  return _mm256_maskz_loadu_epi16(static_cast<__mmask16>((1 << some) - 1), from);
#else
  if (count >= vector_width) [[likely]]
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  const __m128i places = _mm_setr_epi32(0, 1, 2, 3), pairs = _mm_set1_epi32(some / 2);
  const __m128i even = _mm_maskload_epi32(static_cast<const int*>(from), _mm_cmpgt_epi32(pairs, places));
  if (some % 2 == 0) return even;
  alignas(16) uint16_t values[vector_width];
  _mm_store_si128(reinterpret_cast<__m128i*>(values), even);
  std::memcpy(values + some - 1, static_cast<const uint16_t*>(from) + some - 1, sizeof(uint16_t));
  return _mm_load_si128(reinterpret_cast<const __m128i*>(values));
#endif
}

/// With the masks, as GCC 12 warns of AVX-512's conversions without.
inline Vector load_first(const bf16* from, int64_t count) {
  const auto halves = load_first_halves(from, count);
#if CINTA_ISA_LEVEL == 2
  return (Vector)_mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, halves), 16);
#else
  return (Vector)_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16);
#endif
}

inline Vector load_first(const f16* from, int64_t count) {
  const auto halves = load_first_halves(from, count);
#if CINTA_ISA_LEVEL == 2
  return (Vector)_mm512_maskz_cvtph_ps(0xffff, halves);
#else
  return (Vector)_mm256_cvtph_ps(halves);
#endif
}
#endif

#include "cinta/backends/cpu/isa_end.h"
