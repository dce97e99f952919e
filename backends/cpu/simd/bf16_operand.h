// Operands of a product of bf16, packed into the words that AVX-512-BF16 multiplies: two values that follow each other
// along the sum. A panel holds the strips, which are rows of a or columns of b, that a register tile multiplies at
// once.
#pragma once
#include <algorithm>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/simd/convert.h"
#include "cinta/backends/cpu/simd/transpose.h"

#include "cinta/backends/cpu/isa_begin.h"
#if CINTA_ISA_LEVEL == 2

/// An operand whose sum runs down the rows of memory: each pair of rows is woven.
struct Woven {
  const uint16_t* data;
  int64_t strips, row, k;
  int64_t width;  ///< strips of a panel: panel_rows or panel_columns

  int64_t panels() const { return (strips + width - 1) / width; }
  int64_t words() const { return (k + 1) / 2; }
  /// Words from a step of a panel to the next: whole vectors, since those that cross lines are slow to store.
  int64_t pitch() const { return round_up(width, vector_width); }
  /// Words from a panel to the next: a vector more than it has, so that they do not lie a power of two apart.
  int64_t panel_words() const { return words() * pitch() + vector_width; }
  int64_t room() const { return panels() * panel_words(); }
  /// `count` strips from `first` on, or those there are.
  Woven stripe(int64_t first, int64_t count) const {
    return {data + first, std::min(count, strips - first), row, k, width};
  }

  void pack(float* out) const {
    typedef int32_t Order __attribute__((vector_size(64)));
    Order front, back;  // the words of elements 0 to 15 of two rows, and of 16 to 31
    for (int i = 0; i < vector_width; ++i) front[i] = i | (i + 32) << 16, back[i] = front[i] + (16 | 16 << 16);
    constexpr int64_t ahead = 32;  // rows: they lie too far apart for the machine to see what comes next
    for (int64_t w = 0; w < words(); ++w, out += pitch()) {
      const uint16_t* even = data + 2 * w * row;
      const bool paired = 2 * w + 1 < k;
      if (2 * w + ahead + 1 < k)
        for (const int64_t r : {ahead, ahead + 1}) prefetch(even + r * row, 2 * strips + 62);  // begun lines, too
      float* words_of_panel = out;
      for (int64_t strip = 0; strip < strips; strip += width, words_of_panel += panel_words()) {
        const int64_t exist = std::min(width, strips - strip);
        const auto mask = static_cast<__mmask32>((uint64_t{1} << exist) - 1);
        const __m512i upper = _mm512_maskz_loadu_epi16(mask, even + strip),
                      lower = paired ? _mm512_maskz_loadu_epi16(mask, even + strip + row) : _mm512_setzero_si512();
        _mm512_store_si512(words_of_panel, _mm512_permutex2var_epi16(upper, (__m512i)front, lower));
        if (width > vector_width)
          _mm512_store_si512(words_of_panel + vector_width, _mm512_permutex2var_epi16(upper, (__m512i)back, lower));
      }
    }
  }
};

/// Columns of b that lie along the sum, as the right operand: squares of their words are transposed.
struct Transposed {
  const uint16_t* data;
  int64_t strips, row, k;  ///< row: from a strip to the next. k is even

  int64_t words() const { return k / 2; }
  int64_t panel_words() const { return round_up(words(), vector_width) * panel_columns + vector_width; }
  Transposed stripe(int64_t first, int64_t count) const {
    return {data + first * row, std::min(count, strips - first), row, k};
  }

  void pack(float* out) const {
    for (int64_t strip = 0; strip < strips; strip += panel_columns, out += panel_words())
      for (int64_t w = 0; w < words(); w += vector_width)
        for (int64_t half = 0; half < panel_columns; half += vector_width)
          pack_square(out + w * panel_columns + half, strip + half, w);
  }

 private:
  void pack_square(float* out, int64_t strip, int64_t word) const {
    constexpr int64_t ahead = 2 * vector_width;  // words: further, and 32 strips push each other out of the first cache
    const int64_t exist = std::clamp<int64_t>(strips - strip, 0, vector_width), pitch = row / 2;
    const auto* in = reinterpret_cast<const float*>(data + strip * row) + word;
    for (int64_t i = 0; i < exist; ++i) __builtin_prefetch(in + i * pitch + ahead);
    if (exist == vector_width && word + vector_width <= words())
      return transpose_block(out, panel_columns, in, pitch);
    alignas(64) float square[vector_width * vector_width]{};
    const auto mask = static_cast<__mmask16>((1 << std::min<int64_t>(vector_width, words() - word)) - 1);
    for (int64_t i = 0; i < exist; ++i)
      _mm512_store_ps(square + i * vector_width, _mm512_maskz_loadu_ps(mask, in + i * pitch));
    transpose_block(out, panel_columns, square, vector_width);
  }
};
#endif

#include "cinta/backends/cpu/isa_end.h"
