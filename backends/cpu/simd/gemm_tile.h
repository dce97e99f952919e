// The register tile of a matrix product: what multiplies a panel of panel_rows rows of a by one of panel_columns
// columns of b. Panels come packed as floats, step after step of k; a tile that computes in narrower pairs first brings
// them into its own form.
#pragma once
#include <cstdint>
#if CINTA_ISA_LEVEL == 2
#include <immintrin.h>
#endif

#include "cinta/backends/cpu/isa_begin.h"

#if CINTA_ISA_LEVEL == 2
inline constexpr int vector_bytes = 64, panel_rows = 12;
#elif CINTA_ISA_LEVEL == 1
inline constexpr int vector_bytes = 32, panel_rows = 6;
#else
inline constexpr int vector_bytes = 16, panel_rows = 6;
#endif
typedef float Vector __attribute__((vector_size(vector_bytes)));

/// panel_rows x panel_columns sums fill the vector registers.
inline constexpr int vector_width = vector_bytes / sizeof(float), panel_columns = 2 * vector_width;

/// The register tile: products of f32, one step of k at a time.
struct FloatTile {
  template <int width>
  static void finish(float*, int64_t) {}

  /// out[panel_rows][panel_columns] = sum over the steps of a panel of a times a panel of b. A function of its own,
  /// since among other code the compiler finds no registers for b and fetches it from memory for every product.
  [[gnu::noinline]] static void multiply(float* out, const float* a, const float* b, int64_t steps) {
    Vector left[panel_rows]{}, right[panel_rows]{};
    for (int64_t k = 0; k < steps; ++k, a += panel_rows, b += panel_columns) {
      const Vector b0 = *reinterpret_cast<const Vector*>(b), b1 = *reinterpret_cast<const Vector*>(b + vector_width);
#pragma GCC unroll 16
      for (int i = 0; i < panel_rows; ++i) {
        left[i] += a[i] * b0;
        right[i] += a[i] * b1;
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < panel_rows; ++i) {
      *reinterpret_cast<Vector*>(out + i * panel_columns) = left[i];
      *reinterpret_cast<Vector*>(out + i * panel_columns + vector_width) = right[i];
    }
  }
};

#if CINTA_ISA_LEVEL == 2
/// Products of bf16, two steps of k at once. Twice as fast; for operands that came as bf16, and for what is made of
/// them on the way, which is rounded. Only where isa_level() reaches isa_avx512_bf16.
struct Bf16Tile {
  typedef uint32_t Words __attribute__((vector_size(64)));
  typedef uint16_t Halves __attribute__((vector_size(32)));

  /// Rounds a panel in place: the word of steps k and k + 1 takes the place of float k / 2.
  template <int width>
  __attribute__((target("avx512bf16"))) static void finish(float* panel, int64_t steps) {
    for (int64_t k = 0; k < steps; k += 2)
      for (int c = 0; c < width; c += 16) {
        const auto lanes = static_cast<__mmask16>(width - c < 16 ? (1 << (width - c)) - 1 : 0xffff);
        Words pairs = rounded(panel + k * width + c, lanes);
        if (k + 1 < steps) pairs |= rounded(panel + (k + 1) * width + c, lanes) << 16;
        _mm512_mask_storeu_epi32(panel + k / 2 * width + c, lanes, (__m512i)pairs);
      }
  }
  __attribute__((target("avx512bf16"))) static Words rounded(const float* values, __mmask16 lanes) {
    return __builtin_convertvector((Halves)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(lanes, values)), Words);
  }

  __attribute__((target("avx512bf16"), noinline)) static void multiply(float* out, const float* a, const float* b,
                                                                       int64_t steps) {
    __m512 left[panel_rows]{}, right[panel_rows]{};
    for (int64_t k = 0; k < steps; k += 2, a += panel_rows, b += panel_columns) {
      const auto b0 = (__m512bh)_mm512_load_ps(b), b1 = (__m512bh)_mm512_load_ps(b + vector_width);
#pragma GCC unroll 16
      for (int i = 0; i < panel_rows; ++i) {
        const auto pair = (__m512bh)_mm512_set1_ps(a[i]);
        left[i] = _mm512_dpbf16_ps(left[i], pair, b0);
        right[i] = _mm512_dpbf16_ps(right[i], pair, b1);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < panel_rows; ++i) {
      _mm512_store_ps(out + i * panel_columns, left[i]);
      _mm512_store_ps(out + i * panel_columns + vector_width, right[i]);
    }
  }
};
#endif

#include "cinta/backends/cpu/isa_end.h"
