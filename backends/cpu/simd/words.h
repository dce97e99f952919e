// Operands of a register tile as it reads them: words of 32 bits, each of one f32 or two bf16 that follow each other
// along the sum. A matrix is first brought into rows of words; what the other operand needs is made of those.
#pragma once
#include <algorithm>
#include <cstring>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/simd/convert.h"
#include "cinta/backends/cpu/simd/transpose.h"

#include "cinta/backends/cpu/isa_begin.h"

/// Rows of words, `stride` apart.
struct Words {
  const float* data;
  int64_t rows, stride;
  const float* row(int64_t i) const { return data + i * stride; }
};

/// Rows of sums, in room for whole tiles: what is beyond the rows may hold anything.
struct Sums {
  float* data;
  int64_t rows, stride;
};

/// A right operand: word w of the columns j .. j + panel_columns lies at data + j / panel_columns * panel + w * stride.
struct RightWords {
  const float* data;
  int64_t stride, panel;
};

template <class Tile>
struct Operands {
  static constexpr int64_t per_word = Tile::steps_per_word;
  /// Words of a sum over `steps`.
  static int64_t words(int64_t steps) { return (steps + per_word - 1) / per_word; }

  /// Room for by_rows(), by_columns() and transposed() of a matrix, in words.
  static int64_t row_stride(int64_t columns) { return round_up(columns, panel_columns) / per_word; }
  static int64_t room(int64_t rows, int64_t columns) {
    return (round_up(rows, panel_columns) + panel_rows) * row_stride(columns);
  }

  /// The first `rows` rows of m, or those that `order` names: words along each row, 0 beyond the last column.
  static Words by_rows(float* room, const Matrix& m, int64_t rows, int64_t columns, const int64_t* order = nullptr) {
    const int64_t stride = row_stride(columns), item = size_of(m.dtype);
    const auto at = [&](int64_t i) {
      return static_cast<const char*>(m.data) + (order ? order[std::min(i, rows - 1)] : i) * m.row * item;
    };
    for (int64_t i = 0; i < rows; ++i) {
      // The rows lie too far apart for the machine to see what comes next.
      prefetch_far(at(i + 24), columns * item);
      put_row(room + i * stride, m.dtype, at(i), columns, stride);
    }
    std::fill(room + rows * stride, room + round_up(rows, panel_columns) * stride, 0.0f);
    return {room, rows, stride};
  }

  /// The transpose of x as a right operand: the sum runs along x's rows.
  static RightWords transposed(float* room, const Words& x) {
    for (int64_t r = 0; r < round_up(x.rows, panel_columns); r += vector_width)
      for (int64_t w = 0; w < x.stride; w += vector_width)
        transpose_block(room + (r / panel_columns * x.stride + w) * panel_columns + r % panel_columns, panel_columns,
                        x.data + r * x.stride + w, x.stride);
    return {room, panel_columns, x.stride * panel_columns};
  }

  /// x as a right operand: the sum runs down x's columns.
  static RightWords by_columns([[maybe_unused]] float* room, const Words& x) {
    if constexpr (per_word == 1) {
      return {x.data, x.stride, panel_columns};
    } else {
      const int64_t stride = x.stride * per_word;
      for (int64_t r = 0; r < x.rows; r += 2) join_rows(room + r / 2 * stride, x.data + r * x.stride, x.stride);
      return {room, stride, panel_columns};
    }
  }

 private:
  static void put_row(float* out, Dtype dtype, const void* row, int64_t columns, int64_t stride) {
    const int64_t bytes = columns * 4 / per_word, rest = stride * 4 - bytes;
    if (dtype == (per_word == 1 ? Dtype::f32 : Dtype::bf16)) {
      std::memcpy(out, row, static_cast<size_t>(bytes));
    } else if constexpr (per_word == 1) {
      load(out, dtype, row, 0, 1, columns);
    } else {
      float part[64];
      for (int64_t c = 0; c < columns; c += 64) {
        load(part, dtype, row, c, 1, std::min<int64_t>(64, columns - c));
        store(Dtype::bf16, out, c, 1, part, std::min<int64_t>(64, columns - c));
      }
    }
    if (rest > 0) std::memset(reinterpret_cast<char*>(out) + bytes, 0, static_cast<size_t>(rest));
  }

  /// Two rows of bf16, `stride` words each, as words of both: element c of the first row and of the second.
  static void join_rows(float* out, const float* rows, int64_t stride) {
    typedef uint16_t Half __attribute__((may_alias));
    typedef uint32_t Word __attribute__((may_alias));
    const auto *first = reinterpret_cast<const Half*>(rows), *second = first + 2 * stride;
    auto* words = reinterpret_cast<Word*>(out);
    for (int64_t c = 0; c < 2 * stride; ++c) words[c] = first[c] | static_cast<uint32_t>(second[c]) << 16;
  }
};

/// n columns of out = scale * a b, or += it, where the sum has `words` words. a has rows for whole tiles too.
template <class Tile, Walk walk>
void multiply_words(const Sums& out, int64_t n, const float* a, int64_t a_stride, const RightWords& b, int64_t words,
                    float scale, bool add = false) {
  const int64_t next_rows = walk == Walk::along_rows ? a_stride * panel_rows : panel_rows;
  for (int64_t j = 0; j < n; j += panel_columns)
    for (int64_t i = 0; i < out.rows; i += panel_rows)
      Tile::template multiply<walk>(out.data + i * out.stride + j, out.stride, a + i / panel_rows * next_rows, a_stride,
                                    b.data + j / panel_columns * b.panel, b.stride, words, scale, add, out.rows - i);
}

#include "cinta/backends/cpu/isa_end.h"
