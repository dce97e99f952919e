// Attention backward: the probabilities of a block of queries are made again. With P the probabilities, M the mask:
// dV = (P M)^T dO; dP = (dO V^T) M; dS = P (dP - sum(dP P)); dQ = scale dS K; dK = scale dS^T Q.
#include <utility>

#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/attention_columns.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

using kernels::Attention;

/// Columns of scores become P M, of dp = dO V^T scale * dS; what no query sees becomes 0 up to row `rows`. `factors`
/// are the columns of M, or null. P is made without lse, whose rounding is so much of large scores that a part which
/// all keys share would no longer cancel in dQ.
template <bool narrow>
void gradient_columns(float* scores, float* dp, int64_t stride, float scale, const Seen& seen, int64_t rows,
                      const Factors* factors, RowsAhead& ahead) {
  seen.hide(scores, stride);
  float most[lanes], sum[lanes], along[lanes], inverse[lanes];
  largest_of_columns(most, scores, stride, seen.by_some);
  sum_columns(sum, seen.by_some, [&](int64_t t) {
    ahead.fetch();
    return [&, t](int64_t j) {
      float& score = scores[t * stride + j];
      return score = math::exp_below_for<narrow>(scale * (score - most[j]));
    };
  });
#pragma omp simd
  for (int64_t j = 0; j < lanes; ++j) inverse[j] = 1 / sum[j];
  const auto add_along = [&](int64_t t) {
    return [&, share = scores + t * stride, dp = dp + t * stride](int64_t j) {
      share[j] *= inverse[j];
      return share[j] * dp[j];
    };
  };
  if (factors)
    sum_columns(along, seen.by_some, [&](int64_t t) {
      const float* factor = factors->row(t);
#pragma omp simd
      for (int64_t j = 0; j < lanes; ++j) dp[t * stride + j] = masked(dp[t * stride + j], factor[j]);
      return add_along(t);
    });
  else
    sum_columns(along, seen.by_some, add_along);
  for (int64_t t = 0; t < seen.by_some; ++t) {
    float *share = scores + t * stride, *ds = dp + t * stride;
#pragma omp simd
    for (int64_t j = 0; j < lanes; ++j) ds[j] = scale * share[j] * (ds[j] - along[j]);
    if (!factors) continue;
    const float* factor = factors->row(t);
#pragma omp simd
    for (int64_t j = 0; j < lanes; ++j) share[j] = masked(share[j], factor[j]);
  }
  seen.clear(scores, stride, rows);
  seen.clear(dp, stride, rows);
}

struct Tensors {
  View dq, dk, dv, grad_o, q, k, v;
};

template <class Tile>
void attend_gradients(const Tensors& x, const Attention& options, const Wanted& wanted, const DropoutRecord& site,
                      int64_t number) {
  const Head h(x.q, x.k, options, wanted, number), coming(x.q, x.k, options, wanted, next_head(number, x.k, options));
  const int64_t size = x.q.size(3), all_queries = h.all_queries, wide = round_up(size, panel_columns);
  const Matrix dq = h.of_queries(x.dq);
  const bool drops = options.dropout.p > 0;

  using Operand = Operands<Tile>;
  [[maybe_unused]] const typename Tile::Use use;
  const int64_t of_queries = Operand::room(all_queries, size), of_keys = Operand::room(h.all_keys, size),
                sums = round_up(h.all_keys, panel_columns) * wide, of_factors = drops ? Factors::room(h.all_keys) : 0,
                of_down = Operand::down_room(h.all_keys, h.block);
  float* next = scratch<float>(
      6 * of_queries + 3 * of_keys + 2 * h.room + of_down + 2 * sums + h.block * wide + of_factors, Workspace::tile);
  const auto take = [&](int64_t count) { return std::exchange(next, next + count); };
  float *scores = take(h.room), *dp = take(h.room), *down_room = take(of_down), *dk = take(sums), *dv = take(sums),
        *result = take(h.block * wide);
  const Factors factors(take(of_factors), h.all_keys);
  const auto by_queries = [&](const View& view) {
    return Operand::to_pack(take(of_queries), h.of_queries(view), h.queries, size, h.order);
  };
  const auto by_keys = [&](const View& view) { return Operand::by_rows(take(of_keys), h.of(view), h.keys, size); };
  const Words query = by_queries(x.q), gradient = by_queries(x.grad_o), key = by_keys(x.k), value = by_keys(x.v);
  const RightWords queries = Operand::transposed(take(of_queries), query, size),
                   gradients = Operand::transposed(take(of_queries), gradient, size),
                   query_columns = Operand::by_columns(take(of_queries), query, size),
                   of_gradient = Operand::by_columns(take(of_queries), gradient, size),
                   key_columns = Operand::by_columns(take(of_keys), key, size);
  RowsAhead ahead;
  for (const View* view : {&x.dk, &x.dv}) ahead.write(h.of(*view), h.keys);
  ahead.write(dq, h.queries, h.order);
  for (const View* view : {&x.q, &x.grad_o}) ahead.read(coming.of_queries(*view), coming.queries, coming.order);
  for (const View* view : {&x.k, &x.v}) ahead.read(coming.of(*view), coming.keys);
  ahead.spread(Head::row_bytes(x.q), h.keys * ((h.queries + lanes - 1) / lanes));

  for (int64_t first = 0; first < all_queries; first += h.block) {
    const int64_t rows = std::min(h.block, all_queries - first),
                  exist = std::clamp<int64_t>(h.queries - first, 0, rows);
    if (exist > 0) {
      const int64_t width = h.seen_by(first + exist - 1), whole = round_up(width, panel_columns);
      const auto scores_of = [&](float* out, const Words& left, const RightWords& right) {
        multiply_words<Tile>({out, width, h.stride}, exist, Left<Walk::along_rows>{left.data, left.stride},
                             right.from_column(first), Operand::words(size));
      };
      scores_of(scores, key, queries);
      scores_of(dp, value, gradients);
      for (int64_t i = 0; i < exist; i += lanes) {
        const int64_t count = std::min(lanes, exist - i);
        if (drops) factors.draw(h, site, first + i, count);
        gradient_columns<Tile::steps_per_word == 2>(scores + i, dp + i, h.stride, options.scale,
                                                    Seen(h, first + i, count), whole, drops ? &factors : nullptr,
                                                    ahead);
      }
      // The first block, in which a head that has queries has some, begins the sums: also of keys that it does not see,
      // as later ones may.
      if (first == 0)
        for (float* sum : {dk, dv}) std::fill(sum + width * wide, sum + sums, 0.0f);
      // sum = shares (rows of this block), or += it
      const auto add = [&](float* sum, const float* shares, const RightWords& right) {
        multiply_words<Tile>({sum, width, wide}, size, Operand::along(scores, shares, h.stride, whole, exist),
                             right.from_word(first / Operand::per_word), Operand::words(exist), first > 0);
      };
      add(dv, scores, of_gradient);
      add(dk, dp, query_columns);
      multiply_words<Tile>({result, exist, wide}, size, Operand::down(down_room, dp, h.stride, width, exist),
                           key_columns, Operand::words(width));
    }
    store_rows(dq, first, exist, rows, size, result, wide, h.order);
  }
  const int64_t with_gradient = h.queries > 0 ? h.keys : 0;
  store_rows(h.of(x.dk), 0, with_gradient, h.all_keys, size, dk, wide);
  store_rows(h.of(x.dv), 0, with_gradient, h.all_keys, size, dv, wide);
}

void attention_backward(View dq, View dk, View dv, View grad_o, View q, View k, View v, View, View, Attention options) {
  const DropoutRecord site(options.dropout);
  const Wanted wanted(options);
  const Tensors tensors{dq, dk, dv, grad_o, q, k, v};
  with_tile(q.dtype, [&]<class Tile>() {
    parallel_for(heads_of(k, options), 1,
                 [&](int64_t number, int64_t) { attend_gradients<Tile>(tensors, options, wanted, site, number); });
  });
}

const InstallSimd here{kernels::attention_backward, attention_backward, floats_of_32_bits};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
