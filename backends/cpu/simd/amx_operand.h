// An operand of a product by AMX, packed: bf16 as the words of two that tiles hold, for panels of 32 rows of a or
// columns of b, a pair of tiles for every 32 terms of the sum.
#pragma once
#include <algorithm>

#include "cinta/backends/cpu/simd/transpose.h"

#include "cinta/backends/cpu/isa_begin.h"

#if CINTA_ISA_LEVEL == 2
/// One operand: its strips are rows of a, or columns of b.
struct AmxOperand {
  static constexpr int64_t side = 16, square = side * side;  ///< words of a tile
  static constexpr int64_t panel = 2 * side;                 ///< rows of a, or columns of b, multiplied together
  static constexpr int64_t step = 2 * side;                  ///< terms of the sum in a tile

  const uint16_t* data;
  int64_t strips, strip_stride, k, k_stride;
  bool right;

  int64_t panels() const { return (strips + panel - 1) / panel; }
  int64_t panel_words() const { return round_up(k, step) * side; }

  /// Two tiles: the words of 32 strips over 32 terms, zeros beyond; a's by rows, b's by columns.
  void pack_tiles(float* out, int64_t strip, int64_t k0) const {
    const int64_t wide = std::clamp<int64_t>(strips - strip, 0, panel), deep = std::min(step, k - k0);
    const uint16_t* at = data + strip * strip_stride + k0 * k_stride;
    const auto strip_words = [&](int64_t i) { return row(at + i * strip_stride, i < wide ? deep : 0); };
    if (k_stride == 1 && right) {
      for (int64_t half = 0; half < panel; half += side)
        transpose_rows(out + half * side, side, [&](int i) { return (Vector)strip_words(half + i); });
    } else if (k_stride == 1) {
      for (int64_t i = 0; i < panel; ++i) _mm512_store_si512(out + i * side, strip_words(i));
    } else if (right) {
      weave(out, at, wide, deep);
    } else {
      alignas(64) float woven[2 * square];
      weave(woven, at, wide, deep);
      for (int64_t half = 0; half < 2 * square; half += square) transpose_block(out + half, side, woven + half, side);
    }
  }

  /// Panels first .. first + count, one after another.
  void pack_panels(float* out, int64_t first, int64_t count) const {
    const auto pack = [&](int64_t i, int64_t k0) {
      pack_tiles(out + i * panel_words() + k0 * side, (first + i) * panel, k0);
    };
    // Along the rows of memory.
    if (k_stride == 1)
      for (int64_t i = 0; i < count; ++i)
        for (int64_t k0 = 0; k0 < k; k0 += step) pack(i, k0);
    else
      for (int64_t k0 = 0; k0 < k; k0 += step)
        for (int64_t i = 0; i < count; ++i) pack(i, k0);
  }

 private:
  /// The words of the pairs of `deep` rows of memory that begin at `at`, `wide` values each.
  void weave(float* out, const uint16_t* at, int64_t wide, int64_t deep) const {
    const __m512i front = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                  back = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    for (int64_t i = 0; i < side; ++i) {
      const uint16_t* from = at + 2 * i * k_stride;
      __builtin_prefetch(from + step * k_stride);
      __builtin_prefetch(from + (step + 1) * k_stride);
      const __m512i even = row(from, 2 * i < deep ? wide : 0), odd = row(from + k_stride, 2 * i + 1 < deep ? wide : 0),
                    low = _mm512_unpacklo_epi16(even, odd), high = _mm512_unpackhi_epi16(even, odd);
      _mm512_store_si512(out + i * side, _mm512_permutex2var_epi64(low, front, high));
      _mm512_store_si512(out + square + i * side, _mm512_permutex2var_epi64(low, back, high));
    }
  }

  /// The first `count` of 32 values, and zeros; of none, nothing is read.
  static __m512i row(const uint16_t* from, int64_t count) {
    return _mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << count) - 1), from);
  }
};
#endif

#include "cinta/backends/cpu/isa_end.h"
