// An operand of f32 for the tiles of AMX, which hold bf16: each value is the sum of three of them. Packed as
// amx_operand.h says, for every 32 terms of the sum a pair of tiles of each part, the high ones first.
#pragma once
#include "cinta/backends/cpu/simd/amx_operand.h"
#include "cinta/backends/cpu/simd/load_first.h"

#include "cinta/backends/cpu/isa_begin.h"

#if CINTA_ISA_LEVEL == 2
/// x = high + middle + low, each a bf16, for |x| from 2^-103 on: below, what is smaller than 2^-126 counts as zero. Of
/// an x that is infinite, rounds to infinity or is no number, one part is no number. Rounded, not cut off, so that
/// parts have either sign and errors do not add up.
struct Parts {
  typedef uint32_t Words __attribute__((vector_size(64)));
  static constexpr uint32_t upper_half = 0xffff0000;

  explicit Parts(__m512 x) : high(rounded(x)), middle(rounded(x - high)), low(x - high - middle) {}
  static __m512 rounded(__m512 x) { return (__m512)(((Words)x + 0x8000u) & upper_half); }
  /// Words of the upper halves of two values each.
  static __m512 words(__m512 first, __m512 second) {
    return (__m512)((Words)first >> 16 | ((Words)second & upper_half));
  }
  __m512 high, middle, low;
};

struct PartsOperand : AmxPlace<float> {
  static constexpr bool in_parts = true;
  static constexpr int64_t step_words = 3 * 2 * square;  ///< of a panel's step
  int64_t panel_words() const { return steps() * step_words; }

  /// Steps `begin` to `end` of panels first .. first + count, one after another.
  void pack(float* out, int64_t first, int64_t count, int64_t begin, int64_t end) const {
    pack_steps(*this, count, begin, end, [&](int64_t i, int64_t s) {
      float* tiles = out + (i * (end - begin) + s - begin) * step_words;
      const bool whole = (first + i + 1) * panel <= strips && (s + 1) * step <= k;
      for (int64_t half = 0; half < panel; half += side, tiles += square)
        (whole ? pack_side<true> : pack_side<false>)(*this, tiles, (first + i) * panel + half, s * step);
    });
  }

 private:
  /// The tiles of sixteen strips, zeros where not all of them and of the terms exist (not `whole`). A word holds terms
  /// w and w + 16 of the step, of a and b alike, so that those of sixteen lanes are made at once; where what lies
  /// together in memory is no row of a tile, it is transposed before.
  template <bool whole>
  static void pack_side(const PartsOperand& o, float* out, int64_t strip, int64_t k0) {
    const bool along = o.k_stride == 1;
    const int64_t strips = o.strips - strip, terms = o.k - k0;
    const float* at = o.at(strip, k0);
    // Sixteen terms of strip i, from the first or the seventeenth on; or those of the sixteen strips, of one term.
    const auto load = [&](int64_t i, int64_t from) -> __m512 {
      const float* term = along ? at + i * o.strip_stride + from : at + (from + i) * o.k_stride;
      if (!along) __builtin_prefetch(term + step * o.k_stride, 0, 2);  // too far apart for the machine to see it coming
      if (whole) return _mm512_loadu_ps(term);
      const bool exists = along ? i < strips : from + i < terms;
      return (__m512)load_first(term, !exists ? 0 : along ? terms - from : strips);
    };
    const auto store = [&](int64_t i, const Parts& first, const Parts& second) {
      float* const row = out + i * side;
      _mm512_store_ps(row, Parts::words(first.high, second.high));
      _mm512_store_ps(row + 2 * square, Parts::words(first.middle, second.middle));
      _mm512_store_ps(row + 4 * square, Parts::words(first.low, second.low));
    };
    if (along != o.right) {
      for (int64_t i = 0; i < side; ++i) store(i, Parts(load(i, 0)), Parts(load(i, side)));
    } else {
      alignas(64) float across[2 * square];
      for (int64_t half = 0; half < 2; ++half)
        transpose_rows(across + half * square, side, [&](int i) { return (Vector)load(i, half * side); });
      for (int64_t i = 0; i < side; ++i)
        store(i, Parts(_mm512_load_ps(across + i * side)), Parts(_mm512_load_ps(across + square + i * side)));
    }
  }
};
#endif

#include "cinta/backends/cpu/isa_end.h"
