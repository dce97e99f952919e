// One head of one sample as attention's kernels see it: what exists, how queries are cut into blocks, the mask.
#pragma once
#include "cinta/backends/cpu/simd/gemm_kernel.h"
#include "cinta/backends/cpu/simd/random.h"
#include "cinta/backends/kernels/attention.h"

#include "cinta/backends/cpu/isa_begin.h"

/// The matrix [S,D] of one head in a view [B,H,S,D].
inline Matrix head_of(const View& all, int64_t sample, int64_t head) {
  const int64_t offset = sample * all.stride(0) + head * all.stride(1);
  return {all.as<char>() + offset * size_of(all.dtype), all.stride(2), 1, all.dtype};
}

/// out rows [0, exists) of a head's matrix = values; rows [exists, rows) = 0.
inline void store_rows(const Matrix& out, int64_t first, int64_t exists, int64_t rows, int64_t columns,
                       const float* values, int64_t stride) {
  for (int64_t i = 0; i < exists; ++i)
    store(out.dtype, out.data, (first + i) * out.row, 1, values + i * stride, columns);
  if (exists >= rows) return;
  const float zero = 0;
  for (int64_t i = exists; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) store(out.dtype, out.data, (first + i) * out.row + j, 1, &zero, 1);
}

struct Head {
  int64_t sample, head, queries, keys;  ///< how many of each exist
  int64_t block;                        ///< queries of one block
  int64_t stride;                       ///< of a block's rows of scores
  bool causal;

  Head(const View& q, const View& k, const kernels::Attention& options, int64_t number)
      : sample(number / q.size(1)),
        head(number % q.size(1)),
        queries(q.size(2)),
        keys(k.size(2)),
        causal(options.causal) {
    if (options.lengths) {
      const int64_t length = std::max(0, options.lengths.as<const int32_t>()[sample * options.lengths.stride(0)]);
      queries = std::min(queries, length);
      keys = std::min(keys, length);
    }
    if (keys == 0) queries = 0;
    constexpr int64_t most = 96;
    const int64_t blocks = std::max<int64_t>(1, (q.size(2) + most - 1) / most);
    block = round_up((q.size(2) + blocks - 1) / blocks, panel_rows);
    stride = round_up(std::max<int64_t>(1, k.size(2)), panel_columns);
  }
  /// Keys that query `query` sees.
  int64_t seen_by(int64_t query) const { return causal ? std::min(keys, query + 1) : keys; }
};

/// out[i][j] = scale * sum, for a whole block of scores. The callback of multiply_block.
inline auto scores_into(float* out, int64_t stride, float scale) {
  return [=](int64_t i, int64_t rows, int64_t j, int64_t columns, const float* sums, bool first) {
    for (int64_t r = 0; r < rows; ++r) {
      float* row = out + (i + r) * stride + j;
      for (int64_t c = 0; c < columns; ++c) row[c] = (first ? 0 : row[c]) + scale * sums[r * panel_columns + c];
    }
  };
}
/// out[i][j] += scale * sum.
inline auto added_into(float* out, int64_t stride, float scale) {
  return [=](int64_t i, int64_t rows, int64_t j, int64_t columns, const float* sums, bool) {
    for (int64_t r = 0; r < rows; ++r) {
      float* row = out + (i + r) * stride + j;
      for (int64_t c = 0; c < columns; ++c) row[c] += scale * sums[r * panel_columns + c];
    }
  };
}

#include "cinta/backends/cpu/isa_end.h"
