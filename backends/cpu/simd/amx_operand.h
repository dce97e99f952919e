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
    alignas(64) float other[2 * square];
    const int64_t wide = std::clamp<int64_t>(strips - strip, 0, panel), deep = std::min(step, k - k0);
    const uint16_t* at = data + strip * strip_stride + k0 * k_stride;
    const bool along = k_stride == 1;
    float* words = along == right ? other : out;
    if (along) {
      for (int64_t i = 0; i < panel; ++i)
        _mm512_store_si512(words + i * side, row(at + i * strip_stride, i < wide ? deep : 0));
    } else {
      const __m512i front = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                    back = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
      for (int64_t i = 0; i < side; ++i) {
        const uint16_t* from = at + 2 * i * k_stride;
        __builtin_prefetch(from + step * k_stride);
        __builtin_prefetch(from + (step + 1) * k_stride);
        const __m512i even = row(from, 2 * i < deep ? wide : 0),
                      odd = row(from + k_stride, 2 * i + 1 < deep ? wide : 0), low = _mm512_unpacklo_epi16(even, odd),
                      high = _mm512_unpackhi_epi16(even, odd);
        _mm512_store_si512(words + i * side, _mm512_permutex2var_epi64(low, front, high));
        _mm512_store_si512(words + square + i * side, _mm512_permutex2var_epi64(low, back, high));
      }
    }
    if (words != other) return;
    transpose_block(out, side, other, side);
    transpose_block(out + square, side, other + square, side);
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
  /// The first `count` of 32 values, and zeros; of none, nothing is read.
  static __m512i row(const uint16_t* from, int64_t count) {
    return _mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << count) - 1), from);
  }
};
#endif

#include "cinta/backends/cpu/isa_end.h"
