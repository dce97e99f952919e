// A square of words of 32 bits, transposed in registers.
#pragma once
#include "cinta/backends/cpu/simd/gemm_tile.h"

#include "cinta/backends/cpu/isa_begin.h"

/// out[c][r] = row(r)[c] for vector_width rows and columns: rounds that each bring rows together that lie half of all
/// apart.
template <class Row>
[[gnu::always_inline]] inline void transpose_rows(float* out, int64_t out_stride, const Row& row) {
  typedef int32_t Order __attribute__((vector_size(vector_bytes)));
  Order low, high;
  for (int i = 0; i < vector_width; ++i) {
    low[i] = i / 2 + i % 2 * vector_width;
    high[i] = low[i] + vector_width / 2;
  }
  Vector rows[vector_width], next[vector_width];
#pragma GCC unroll 16
  for (int i = 0; i < vector_width; ++i) rows[i] = row(i);
#pragma GCC unroll 4
  for (int round = 1; round < vector_width; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < vector_width / 2; ++i) {
      next[2 * i] = __builtin_shuffle(rows[i], rows[i + vector_width / 2], low);
      next[2 * i + 1] = __builtin_shuffle(rows[i], rows[i + vector_width / 2], high);
    }
#pragma GCC unroll 16
    for (int i = 0; i < vector_width; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < vector_width; ++i) *reinterpret_cast<Vector*>(out + i * out_stride) = rows[i];
}

/// The same of rows that lie `in_stride` apart, anywhere.
inline void transpose_block(float* out, int64_t out_stride, const float* in, int64_t in_stride) {
  typedef float Unaligned __attribute__((vector_size(vector_bytes), aligned(4)));
  transpose_rows(out, out_stride,
                 [&](int i) -> Vector { return *reinterpret_cast<const Unaligned*>(in + i * in_stride); });
}

#include "cinta/backends/cpu/isa_end.h"
