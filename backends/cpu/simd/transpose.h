// A square of words of 32 bits, transposed in registers.
#pragma once
#include <utility>

#include "cinta/backends/cpu/simd/gemm_tile.h"

#include "cinta/backends/cpu/isa_begin.h"

typedef int32_t Places __attribute__((vector_size(vector_bytes)));

/// Of each piece of two vectors in turn, every second part from part `first` on: those of the first vector, then those
/// of the second one. Pieces of four words by words, and the whole by parts of four words, are one instruction.
template <int first, int piece, int part, int... i>
Places every_second(std::integer_sequence<int, i...>) {
  constexpr auto from = [](int at) {
    const int within = at % piece, taken = within / part, parts = piece / part;
    const bool second = taken >= parts / 2;
    const int source = 2 * (second ? taken - parts / 2 : taken) + first;
    return (second ? vector_width : 0) + at - within + source * part + within % part;
  };
  return Places{from(i)...};
}

/// Rows whose numbers differ by `distance` become their even and their odd parts.
template <int distance>
[[gnu::always_inline]] inline void part_rows(Vector (&rows)[vector_width]) {
  constexpr bool words = distance < 4;
  constexpr int piece = words ? 4 : vector_width, part = words ? 1 : 4;
  constexpr std::make_integer_sequence<int, vector_width> all;
  const Places even = every_second<0, piece, part>(all), odd = every_second<1, piece, part>(all);
#pragma GCC unroll 16
  for (int i = 0; i < vector_width; ++i) {
    if (i & distance) continue;
    const Vector low = rows[i], high = rows[i + distance];
    rows[i] = __builtin_shuffle(low, high, even);
    rows[i + distance] = __builtin_shuffle(low, high, odd);
  }
}

/// out[c][r] = row(r)[c] for vector_width rows and columns.
template <class Row>
[[gnu::always_inline]] inline void transpose_rows(float* out, int64_t out_stride, const Row& row) {
  Vector rows[vector_width];
#pragma GCC unroll 16
  for (int i = 0; i < vector_width; ++i) rows[i] = row(i);
  part_rows<1>(rows);
  part_rows<2>(rows);
  if constexpr (vector_width > 4) part_rows<4>(rows);
  if constexpr (vector_width > 8) part_rows<8>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < vector_width; ++i) *reinterpret_cast<Vector*>(out + i * out_stride) = rows[i];
}

/// The same of rows that lie `in_stride` apart, anywhere.
inline void transpose_block(float* out, int64_t out_stride, const float* in, int64_t in_stride) {
  typedef float Unaligned __attribute__((vector_size(vector_bytes), aligned(2), may_alias));  // words of bf16, too
  transpose_rows(out, out_stride,
                 [&](int i) -> Vector { return *reinterpret_cast<const Unaligned*>(in + i * in_stride); });
}

#include "cinta/backends/cpu/isa_end.h"
