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
  RightWords from_word(int64_t w) const { return {data + w * stride, stride, panel}; }
  /// From column j on, the first of a panel.
  RightWords from_column(int64_t j) const { return {data + j / panel_columns * panel, stride, panel}; }
};

/// A left operand as a tile walks through it; with rows for a whole tile.
template <Walk walk>
struct Left {
  const float* data;
  int64_t stride;
};

template <class Tile>
struct Operands {
  static constexpr int64_t per_word = Tile::steps_per_word;
  /// Words of a sum over `steps`, as many as are multiplied at once. Those beyond the steps are zeros in one of the
  /// operands and finite in the other.
  static int64_t words(int64_t steps) { return round_up(steps, per_word * Tile::words_at_once) / per_word; }

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

  /// The same, for what is only packed once more: where they lie, if they are whole words there.
  static Words to_pack(float* room, const Matrix& m, int64_t rows, int64_t columns, const int64_t* order = nullptr) {
    const bool whole = rows % panel_columns == 0 && columns % panel_columns == 0 && m.row % per_word == 0;
    if (per_word == 2 && m.dtype == Dtype::bf16 && whole && !order)
      return {static_cast<const float*>(m.data), rows, m.row / per_word};
    return by_rows(room, m, rows, columns, order);
  }

  /// The transpose of x as a right operand: the sum runs along x's rows.
  static RightWords transposed(float* room, const Words& x, int64_t columns) {
    const int64_t words = row_stride(columns);
    for (int64_t r = 0; r < round_up(x.rows, panel_columns); r += vector_width)
      for (int64_t w = 0; w < words; w += vector_width)
        transpose_block(room + (r / panel_columns * words + w) * panel_columns + r % panel_columns, panel_columns,
                        x.data + r * x.stride + w, x.stride);
    return {room, panel_columns, words * panel_columns};
  }

  /// x as a right operand: the sum runs down x's columns.
  static RightWords by_columns([[maybe_unused]] float* room, const Words& x, [[maybe_unused]] int64_t columns) {
    if constexpr (per_word == 1) {
      return {x.data, x.stride, panel_columns};
    } else {
      const int64_t words = row_stride(columns);
      for (int64_t r = 0; r < round_up(x.rows, panel_columns); r += 2)
        for (int64_t w = 0; w < words; w += vector_width)
          Tile::weave(room + r * words + 2 * w, x.data + r * x.stride + w, x.data + (r + 1) * x.stride + w);
      return {room, 2 * words, panel_columns};
    }
  }

  /// `rows` rows of `columns` floats, in whole panels, as a left operand whose sum runs along the rows: where they lie,
  /// or packed in `room`, which may be the same.
  static Left<Walk::along_rows> along([[maybe_unused]] float* room, const float* in, int64_t stride,
                                      [[maybe_unused]] int64_t rows, [[maybe_unused]] int64_t columns) {
    if constexpr (per_word == 1) {
      return {in, stride};
    } else {
      for (int64_t i = 0; i < rows; ++i)
        Tile::pack(room + i * stride, in + i * stride, round_up(columns, panel_columns));
      return {room, stride};
    }
  }

  /// Room for down(), for a tile that walks along rows alone.
  static int64_t down_room(int64_t rows, int64_t columns) {
    return Tile::down == Walk::along_rows ? round_up(columns, panel_columns) * words(rows) : 0;
  }
  /// The same where the sum runs down the columns, packed in place, or in `room`.
  static Left<Tile::down> down([[maybe_unused]] float* room, float* in, int64_t stride, int64_t rows,
                               [[maybe_unused]] int64_t columns) {
    if constexpr (per_word == 2)
      for (int64_t w = 0; w < words(rows); ++w)
        Tile::join(in + 2 * w * stride, in + (2 * w + 1) * stride, round_up(columns, panel_columns));
    if constexpr (Tile::down == Walk::along_columns) {
      return {in, stride * per_word};
    } else {
      const int64_t pitch = words(rows);
      for (int64_t w = 0; w < pitch; w += vector_width)
        for (int64_t c = 0; c < columns; c += vector_width)
          transpose_block(room + c * pitch + w, pitch, in + w * per_word * stride + c, stride * per_word);
      return {room, pitch};
    }
  }

 private:
  static void put_row(float* out, Dtype dtype, const void* row, int64_t columns, int64_t stride) {
    const int64_t bytes = columns * 4 / per_word, rest = stride * 4 - bytes;
    if (dtype == (per_word == 1 ? Dtype::f32 : Dtype::bf16)) {
      copy_bytes(out, row, bytes);
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

  /// As memcpy, which of so few bytes takes as long as ten vectors: those that are whole at once.
  static void copy_bytes(float* out, const void* in, int64_t bytes) {
    typedef Vector Unaligned __attribute__((aligned(1), may_alias));
    int64_t b = 0;
    for (; b + vector_bytes <= bytes; b += vector_bytes)
      *reinterpret_cast<Vector*>(reinterpret_cast<char*>(out) + b) =
          *reinterpret_cast<const Unaligned*>(static_cast<const char*>(in) + b);
    if (b < bytes)
      std::memcpy(reinterpret_cast<char*>(out) + b, static_cast<const char*>(in) + b, static_cast<size_t>(bytes - b));
  }
};

/// n columns of out = a b, or += it, where the sum has `words` words.
template <class Tile, Walk walk>
void multiply_words(const Sums& out, int64_t n, const Left<walk>& a, const RightWords& b, int64_t words,
                    bool add = false) {
  for (int64_t j = 0; j < n; j += panel_columns)
    for (int64_t i = 0; i < out.rows; i += Tile::rows)
      Tile::template multiply<walk>(out.data + i * out.stride + j, out.stride,
                                    a.data + (walk == Walk::along_rows ? i * a.stride : i), a.stride,
                                    b.from_column(j).data, b.stride, words, add, out.rows - i);
}

#include "cinta/backends/cpu/isa_end.h"
