// The register tile of a matrix product: panel_rows rows of a times panel_columns columns of b. It reads both as words
// of 32 bits, each of which holds as many steps of the sum as the tile multiplies at once: one of f32, two of bf16.
#pragma once
#include <algorithm>
#include <cstdint>
#if CINTA_ISA_LEVEL > 0
#include <immintrin.h>
#endif

#include "cinta/backends/cpu/gemm.h"

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

/// How a tile walks through a: its rows lie `stride` words apart and each runs along the sum, or every word along the
/// sum lies `stride` behind the one before, and the rows side by side.
enum class Walk { along_rows, along_columns };

/// The words of some rows of a, of one or two steps at a time. Along rows a pointer reaches some rows, as there
/// are not registers for one to each; along columns all, one for each of two steps.
template <Walk walk, int rows, int rows_of_pointer = 4>
struct LeftWords {
  static constexpr bool by_rows = walk == Walk::along_rows;
  static constexpr int pointer_count = by_rows ? (rows + rows_of_pointer - 1) / rows_of_pointer : 2;

  LeftWords(const float* a, int64_t stride) : stride(stride) {
#pragma GCC unroll 16
    for (int i = 0; i < pointer_count; ++i) pointers[i] = a + i * (by_rows ? rows_of_pointer : 1) * stride;
  }
  /// The word of row i, of this step (0) or the next (1).
  const float* word(int i, int step) const {
    return by_rows ? pointers[i / rows_of_pointer] + i % rows_of_pointer * stride + step : pointers[step] + i;
  }
  /// Whether both products of row i are to read its word themselves: along rows where no distance is added to the
  /// pointer, with which that is slow; along columns two of three, as of all there would be too many loads.
  static constexpr bool is_read_twice(int i) { return by_rows ? i % rows_of_pointer == 0 : i % 3 != 2; }
  void advance(int steps) {
#pragma GCC unroll 16
    for (int i = 0; i < pointer_count; ++i) pointers[i] = in_register(pointers[i] + steps * (by_rows ? 1 : stride));
  }

 private:
  /// Else the compiler counts all pointers in one vector, and takes them out again each time.
  static const float* in_register(const float* pointer) {
    asm("" : "+r"(pointer));
    return pointer;
  }
  const float* pointers[pointer_count];
  int64_t stride;
};

/// What a tile fetches while it multiplies, a line for each of its `words_per_line` words of the sum: nothing, or
/// pieces of rows that come next, since the machine does not see them coming by itself: the first line of each of
/// `rows` rows, then the next ones.
struct NothingAhead {
  static constexpr const void* next = nullptr;
  int64_t left() const { return 0; }
  void fetch() {}
  void fetch_line() {}
  void turn() {}
};
struct LinesAhead {
  const void* next = nullptr;  ///< null: nothing is fetched
  int64_t stride = 0;          ///< bytes from a row to the next
  int64_t rows = 0, row = 0;

  void fetch() {
    if (!next) return;
    fetch_line();
    turn();
  }
  /// The same, where turn() is called by the last of the rows that are left(), or by one more, which does no harm.
  void fetch_line() {
    __builtin_prefetch(next, 0, 2);
    next = static_cast<const char*>(next) + stride;
    ++row;
  }
  int64_t left() const { return rows - row; }  ///< lines until the next ones of all rows begin
  void turn() {
    if (row < rows) return;
    next = static_cast<const char*>(next) + 64 - row * stride;
    row = 0;
  }
};

/// out = scale * sums, or with `add` += it, for a register tile, whole or lower. `out` may lie anywhere.
struct PutTile {
  float* out;
  int64_t stride;
  float scale;
  bool add;

  template <int rows>
  void prepare() const {}
  template <class V, int rows>
  [[gnu::always_inline]] void operator()(const V (&left)[rows], const V (&right)[rows]) const {
    typedef V Unaligned __attribute__((aligned(4)));
    float* row = out;
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i, row += stride) {
      Unaligned &low = *reinterpret_cast<Unaligned*>(row), &high = *reinterpret_cast<Unaligned*>(row + vector_width);
      low = add ? low + scale * left[i] : scale * left[i];
      high = add ? high + scale * right[i] : scale * right[i];
    }
  }
};

/// sum + *word * b, with AVX-512 in one instruction, where the compiler would load a word first that it needs twice. A
/// busy other thread of the core leaves fewer instructions a cycle than a tile has: see docs/rows.md, The register
/// tile.
[[gnu::always_inline]] inline Vector add_product(Vector sum, const float* word, Vector b) {
#if CINTA_ISA_LEVEL == 2
  asm("vfmadd231ps %1%{1to16%}, %2, %0" : "+v"(sum) : "m"(*word), "v"(b));
  return sum;
#else
  return sum + *word * b;
#endif
}

/// f<height>() with the lowest of three heights of a register tile that has `rows` rows: with the last ones of a small
/// matrix a whole tile would be mostly empty. Attention over 64 tokens takes 0.95 of its time by it (Zen 4, f32).
template <class F>
void with_height(int64_t rows, F f) {
  constexpr int third = panel_rows / 3;
  if (rows <= third) return f.template operator()<third>();
  if (rows <= 2 * third) return f.template operator()<2 * third>();
  f.template operator()<panel_rows>();
}

/// The register tile: products of f32, one step of k at a time.
struct FloatTile {
  struct Use {};        ///< what a thread keeps while it multiplies
  using Value = float;  ///< what its operands hold in memory
  static constexpr int64_t steps_per_word = 1;
  static constexpr int64_t words_at_once = 1, rows = panel_rows;  ///< of multiply(), at most
  static constexpr int64_t words_per_line = vector_bytes == 64 ? 1 : 2;
  static constexpr Walk down = Walk::along_columns;  ///< through an operand whose sum runs down its columns

  /// sums[vector_width] = all steps of as many strips, whose words of a step lie side by side, `pitch` from the next
  /// ones. Four sums at a time: each waits for the one before it.
  static void add_up(float* sums, const float* words, int64_t pitch, int64_t count) {
    Vector some[4]{};
    for (int64_t w = 0; w < count; w += 4)
#pragma GCC unroll 4
      for (int64_t i = 0; i < 4; ++i)
        if (w + i < count) some[i] += *reinterpret_cast<const Vector*>(words + (w + i) * pitch);
    *reinterpret_cast<Vector*>(sums) = (some[0] + some[1]) + (some[2] + some[3]);
  }

  /// out[rows][panel_columns] = the sum over `words` of a times b, or += it, and more rows up to panel_rows, as
  /// they come. Row w of b lies at w * b_stride.
  template <Walk walk>
  static void multiply(float* out, int64_t out_stride, const float* a, int64_t a_stride, const float* b,
                       int64_t b_stride, int64_t words, bool add, int64_t rows = panel_rows) {
    with_height(rows, [&]<int height>() {
      multiply_to<walk, height>(PutTile{out, out_stride, 1, add}, a, a_stride, b, b_stride, words);
    });
  }

  /// The same to where `put` brings it: put.prepare<rows>() comes first, put(left, right) has the sums of each row.
  /// A function of its own, since among other code the compiler finds no registers for b and fetches it from memory for
  /// every product.
  template <Walk walk, int rows = panel_rows, class Put, class Ahead = NothingAhead>
  [[gnu::noinline]] static void multiply_to(const Put& put, const float* a, int64_t a_stride, const float* b,
                                            int64_t b_stride, int64_t words, const Ahead& coming = {}) {
    Ahead ahead = coming;  // taken apart; a copy on the stack would wait for all that was stored before
    put.template prepare<rows>();
    Vector left[rows]{}, right[rows]{};
    LeftWords<walk, rows, vector_bytes == 64 ? 2 : 4> column(a, a_stride);
    const auto multiply_word = [&](int step) __attribute__((always_inline)) {
      const float* row = b + step * b_stride;
      const Vector b0 = *reinterpret_cast<const Vector*>(row),
                   b1 = *reinterpret_cast<const Vector*>(row + vector_width);
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) {
        const float* word = column.word(i, step);
        if (column.is_read_twice(i)) {
          left[i] = add_product(left[i], word, b0);
          right[i] = add_product(right[i], word, b1);
        } else {
          left[i] += *word * b0;
          right[i] += *word * b1;
        }
      }
    };
    // Two words between branches: a busy other thread of the core may take every second cycle of decoding, in which a
    // branch ends what is decoded. See docs/rows.md, The register tile.
    const auto multiply_two = [&]() __attribute__((always_inline)) {
      multiply_word(0);
      multiply_word(1);
      column.advance(2);
      b += 2 * b_stride;
    };
    constexpr int64_t lines_of_two = 2 / words_per_line;
    int64_t w = 0;
    const int64_t last = words - 2;
    while (ahead.next && w <= last) {  // up to the last row's line or one more, so that nothing is asked on the way
      for (const int64_t end = std::min(last, w + 2 * ((ahead.left() - 1) / lines_of_two)); w <= end; w += 2) {
        multiply_two();
#pragma GCC unroll 2
        for (int64_t line = 0; line < lines_of_two; ++line) ahead.fetch_line();
      }
      ahead.turn();
    }
    for (; w <= last; w += 2) multiply_two();
    if (w < words) multiply_word(0);
    put(left, right);
  }
};

/// The same for operands that are stored narrower, and widened before it reads them.
template <class Stored>
struct WideningTile : FloatTile {
  using Value = Stored;
};

#if CINTA_ISA_LEVEL == 2
/// Products of bf16, two steps of k at once, twice as fast on a Zen 4. Only where multiplies(Dtype::bf16).
struct Bf16Tile {
  struct Use {};
  using Value = bf16;
  static constexpr int64_t steps_per_word = 2, words_at_once = 1, words_per_line = 1, rows = panel_rows;
  static constexpr Walk down = Walk::along_columns;

  /// As FloatTile::multiply.
  template <Walk walk>
  static void multiply(float* out, int64_t out_stride, const float* a, int64_t a_stride, const float* b,
                       int64_t b_stride, int64_t words, bool add, int64_t rows) {
    with_height(rows, [&]<int height>() {
      multiply_to<walk, height>(PutTile{out, out_stride, 1, add}, a, a_stride, b, b_stride, words);
    });
  }

  /// As FloatTile::multiply_to.
  template <Walk walk, int rows = panel_rows, class Put, class Ahead = NothingAhead>
  __attribute__((target("avx512bf16"), noinline)) static void multiply_to(const Put& put, const float* a,
                                                                          int64_t a_stride, const float* b,
                                                                          int64_t b_stride, int64_t words,
                                                                          const Ahead& coming = {}) {
    Ahead ahead = coming;
    put.template prepare<rows>();
    __m512 left[rows]{}, right[rows]{};
    LeftWords<walk, rows> column(a, a_stride);
    for (int64_t w = 0; w < words; ++w, column.advance(1), ahead.fetch(), b += b_stride) {
      const auto b0 = (__m512bh)_mm512_load_ps(b), b1 = (__m512bh)_mm512_load_ps(b + vector_width);
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) {
        const auto pair = (__m512bh)_mm512_set1_ps(*column.word(i, 0));
        left[i] = _mm512_dpbf16_ps(left[i], pair, b0);
        right[i] = _mm512_dpbf16_ps(right[i], pair, b1);
      }
    }
    put(left, right);
  }

  /// As FloatTile::add_up: both steps of a word are multiplied by 1.
  __attribute__((target("avx512bf16"))) static void add_up(float* sums, const float* words, int64_t pitch,
                                                           int64_t count) {
    const auto ones = (__m512bh)_mm512_set1_epi32(0x3f803f80);
    __m512 some[4]{};
    for (int64_t w = 0; w < count; w += 4)
#pragma GCC unroll 4
      for (int64_t i = 0; i < 4; ++i)
        if (w + i < count) some[i] = _mm512_dpbf16_ps(some[i], (__m512bh)_mm512_load_ps(words + (w + i) * pitch), ones);
    _mm512_store_ps(sums, (some[0] + some[1]) + (some[2] + some[3]));
  }

  /// The words of `count` values side by side, in whole panels. out may be in.
  __attribute__((target("avx512bf16"))) static void pack(float* out, const float* in, int64_t count) {
    for (int64_t i = 0; i < count; i += 2 * vector_width)
      _mm512_store_si512(out + i / 2, (__m512i)rounded(in + i, in + i + vector_width));
  }

  /// The words of `count` pairs, 16 or 32, of which a vector holds the first halves and one the second.
  template <int64_t count>
  static void weave(float* out, __m512i first, __m512i second) {
    typedef int32_t Order __attribute__((vector_size(64)));
    Order front, back;  // the words of elements 0 to 15, and of 16 to 31
    for (int i = 0; i < vector_width; ++i) front[i] = i | (i + 32) << 16, back[i] = front[i] + (16 | 16 << 16);
    _mm512_store_si512(out, _mm512_permutex2var_epi16(first, (__m512i)front, second));
    if constexpr (count > vector_width)
      _mm512_store_si512(out + vector_width, _mm512_permutex2var_epi16(first, (__m512i)back, second));
  }
  static void weave(float* out, const float* first, const float* second) {
    weave<2 * vector_width>(out, _mm512_loadu_si512(first), _mm512_loadu_si512(second));
  }

  /// first[i] = the word of first[i] and second[i], in whole vectors.
  __attribute__((target("avx512bf16"))) static void join(float* first, const float* second, int64_t count) {
    typedef uint16_t Order __attribute__((vector_size(64)));
    Order woven;
    for (int i = 0; i < 32; ++i) woven[i] = static_cast<uint16_t>(i / 2 + i % 2 * 16);
    for (int64_t i = 0; i < count; i += vector_width)
      _mm512_store_si512(first + i, _mm512_permutexvar_epi16((__m512i)woven, (__m512i)rounded(first + i, second + i)));
  }

 private:
  /// Two vectors as one.
  __attribute__((target("avx512bf16"))) static __m512bh rounded(const float* low, const float* high) {
    return _mm512_cvtne2ps_pbh(_mm512_load_ps(high), _mm512_load_ps(low));
  }
};
#endif

#include "cinta/backends/cpu/isa_end.h"
