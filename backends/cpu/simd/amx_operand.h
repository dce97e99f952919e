// An operand of a product by AMX, packed: as the words of two bf16 that tiles hold, for panels of 32 rows of a or
// columns of b, for every 32 terms of the sum a pair of tiles, or, of f32, a pair for each of the three parts of a
// value.
#pragma once
#include <algorithm>

#include "cinta/backends/cpu/simd/transpose.h"

#include "cinta/backends/cpu/isa_begin.h"

#if CINTA_ISA_LEVEL == 2
/// What operands of all types share.
struct AmxPanels {
  static constexpr int64_t side = 16, square = side * side;  ///< words of a tile
  static constexpr int64_t panel = 2 * side;                 ///< rows of a, or columns of b, multiplied together
  static constexpr int64_t step = 2 * side;                  ///< terms of the sum in a tile
};

/// Where an operand lies: its strips are rows of a, or columns of b.
template <class Value>
struct AmxPlace : AmxPanels {
  const Value* data;
  int64_t strips, strip_stride, k, k_stride;
  bool right;

  int64_t panels() const { return (strips + panel - 1) / panel; }
  int64_t steps() const { return (k + step - 1) / step; }
  const Value* at(int64_t strip, int64_t term) const { return data + strip * strip_stride + term * k_stride; }
};

/// pack(i, s) for panels i < count and steps begin <= s < end, along the rows of memory.
template <class Value, class Pack>
void pack_steps(const AmxPlace<Value>& place, int64_t count, int64_t begin, int64_t end, const Pack& pack) {
  if (place.k_stride == 1)
    for (int64_t i = 0; i < count; ++i)
      for (int64_t s = begin; s < end; ++s) pack(i, s);
  else
    for (int64_t s = begin; s < end; ++s)
      for (int64_t i = 0; i < count; ++i) pack(i, s);
}

/// One operand of bf16.
struct Bf16Operand : AmxPlace<uint16_t> {
  static constexpr bool in_parts = false;
  static constexpr int64_t step_words = 2 * square;  ///< of a panel's step
  int64_t panel_words() const { return steps() * step_words; }

  /// Steps `begin` to `end` of panels first .. first + count, one after another.
  void pack(float* out, int64_t first, int64_t count, int64_t begin, int64_t end) const {
    pack_steps(*this, count, begin, end, [&](int64_t i, int64_t s) {
      pack_tiles(out + (i * (end - begin) + s - begin) * step_words, (first + i) * panel, s * step);
    });
  }

 private:
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
