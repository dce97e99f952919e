// Attention backward: the probabilities of a block of queries are made again from lse. With P the probabilities, M the
// mask: dV = (P M)^T dO; dP = (dO V^T) M; dS = P (dP - sum(dP P)); dQ = scale dS K; dK = scale dS^T Q.
#include <utility>

#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/attention.h"
#include "cinta/backends/cpu/simd/rows.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

using kernels::Attention;

/// Scores become P M, dp = dO V^T becomes scale * dS; both 0 beyond `seen`. `factors` is the row of M, or null.
void gradient_row(float* scores, float* dp, float lse, float scale, const float* factors, int64_t seen, int64_t width) {
  float along;
  if (factors) {
    along = sum_of(seen, [=](int64_t t) {
      scores[t] = math::exp(scores[t] - lse);
      dp[t] = masked(dp[t], factors[t]);
      return scores[t] * dp[t];
    });
  } else {
    along = sum_of(seen, [=](int64_t t) {
      scores[t] = math::exp(scores[t] - lse);
      return scores[t] * dp[t];
    });
  }
#pragma omp simd
  for (int64_t t = 0; t < seen; ++t) dp[t] = scale * scores[t] * (dp[t] - along);
  if (factors) {
#pragma omp simd
    for (int64_t t = 0; t < seen; ++t) scores[t] = masked(scores[t], factors[t]);
  }
  std::fill(scores + seen, scores + width, 0.0f);
  std::fill(dp + seen, dp + width, 0.0f);
}

struct Operands {
  View dq, dk, dv, grad_o, q, k, v, lse;
};

template <class Tile>
void attend_gradients(const Operands& x, const Attention& options, const DropoutSite& site, int64_t number) {
  const Head h(x.q, x.k, options, number);
  const int64_t size = x.q.size(3), queries = h.all_queries, all_keys = h.all_keys,
                wide = round_up(size, panel_columns);
  const Matrix dq = h.of(x.dq);
  const float* lse = x.lse.as<const float>() + h.first_row;
  const bool drops = options.dropout.p > 0;

  const int64_t across = PackedRight<Tile>::size(size, all_keys), down = PackedRight<Tile>::size(all_keys, size),
                slice = PackedRight<Tile>::size(h.block, size), block = h.block * h.stride;
  // Room for a block of queries over all of k, and for all keys over a block of queries.
  const int64_t left_size = std::max(h.block * depth_block, round_up(all_keys, panel_rows) * h.block);
  float* next = scratch<float>(2 * across + down + slice + left_size + 2 * block + (2 * all_keys + h.block) * wide +
                                   h.stride + 2 * (queries + all_keys) * size,
                               Workspace::tile);
  const auto take = [&](int64_t count) { return std::exchange(next, next + count); };
  const PackedRight<Tile> keys{take(across), size, h.keys}, values{take(across), size, h.keys},
      key_rows{take(down), h.keys, size};
  float *packed_slice = take(slice), *left = take(left_size), *scores = take(block), *dp = take(block),
        *result = take(h.block * wide), *dk = take(all_keys * wide), *dv = take(all_keys * wide),
        *factors = take(h.stride);
  const Matrix query = as_floats(h.of(x.q), h.queries, size, take(queries * size)),
               gradient = as_floats(h.of(x.grad_o), h.queries, size, take(queries * size)),
               key = as_floats(h.of(x.k), h.keys, size, take(all_keys * size)),
               value = as_floats(h.of(x.v), h.keys, size, take(all_keys * size));
  if (h.queries > 0) {
    keys.pack(key.transposed());
    values.pack(value.transposed());
    key_rows.pack(key);
    std::fill_n(dk, 2 * all_keys * wide, 0.0f);
  }
  for (int64_t first = 0; first < queries; first += h.block) {
    const int64_t rows = std::min(h.block, queries - first), exist = std::clamp<int64_t>(h.queries - first, 0, rows);
    if (exist > 0) {
      const int64_t width = h.seen_by(first + exist - 1);
      multiply_block(query, first, exist, keys, 0, width, size, left, scaled_into(scores, h.stride, options.scale));
      multiply_block(gradient, first, exist, values, 0, width, size, left, scaled_into(dp, h.stride, 1));
      for (int64_t i = 0; i < exist; ++i) {
        if (drops) h.draw(factors, site, first + i);
        gradient_row(scores + i * h.stride, dp + i * h.stride, lse[first + i], options.scale, drops ? factors : nullptr,
                     h.seen_by(first + i), width);
      }
      const Matrix p{scores, h.stride, 1, Dtype::f32}, ds{dp, h.stride, 1, Dtype::f32};
      multiply_block(ds, 0, exist, key_rows, 0, size, width, left, scaled_into(result, wide, 1));
      const auto add_transposed = [&](float* sum, const Matrix& shares, const Matrix& of) {
        const PackedRight<Tile> right{packed_slice, exist, size};
        right.pack({of.at(first, 0), of.row, 1, of.dtype});
        multiply_block(shares.transposed(), 0, width, right, 0, size, exist, left, scaled_into(sum, wide, 1, true));
      };
      add_transposed(dv, p, gradient);
      add_transposed(dk, ds, query);
    }
    store_rows(dq, first, exist, rows, size, result, wide);
  }
  const int64_t with_gradient = h.queries > 0 ? h.keys : 0;
  store_rows(h.of(x.dk), 0, with_gradient, all_keys, size, dk, wide);
  store_rows(h.of(x.dv), 0, with_gradient, all_keys, size, dv, wide);
}

void attention_backward(View dq, View dk, View dv, View grad_o, View q, View k, View v, View, View lse,
                        Attention options) {
  const DropoutSite site(options.dropout);
  const Operands operands{dq, dk, dv, grad_o, q, k, v, lse};
  with_tile(q.dtype, [&]<class Tile>() {
    parallel_for(q.size(0) * q.size(1) * sequences_of(options), 1,
                 [&](int64_t number, int64_t) { attend_gradients<Tile>(operands, options, site, number); });
  });
}

const InstallSimd here{kernels::attention_backward, attention_backward, floats_of_32_bits};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
