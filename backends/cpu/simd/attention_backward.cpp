// Attention backward: the probabilities of a block of queries are made again from lse. With P the probabilities, M the
// mask: dV = (P M)^T dO; dP = (dO V^T) M; dS = P (dP - sum(dP P)); dQ = scale dS K; dK = scale dS^T Q.
#include <utility>

#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/attention.h"
#include "cinta/backends/cpu/simd/rows.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

using kernels::Attention;

/// Scores become P M, dp = dO V^T becomes scale * dS; both 0 from `seen` to `width`. `factors` is the row of M, or
/// null. P is divided by its sum, which is 1 but for what lse lost in rounding: of large scores that is so much that a
/// part which all keys share would no longer cancel in dQ.
template <bool narrow>
void gradient_row(float* scores, float* dp, float lse, float scale, const float* factors, int64_t seen, int64_t width) {
  const float sum = exp_and_sum<narrow>(scores, scores, lse, seen);
  float along;
  if (factors) {
    along = sum_of(seen, [=](int64_t t) {
      scores[t] /= sum;
      dp[t] = masked(dp[t], factors[t]);
      return scores[t] * dp[t];
    });
  } else {
    along = sum_of(seen, [=](int64_t t) {
      scores[t] /= sum;
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

struct Tensors {
  View dq, dk, dv, grad_o, q, k, v, lse;
};

template <class Tile>
void attend_gradients(const Tensors& x, const Attention& options, const Wanted& wanted, const DropoutRecord& site,
                      int64_t number) {
  const Head h(x.q, x.k, options, wanted, number), coming(x.q, x.k, options, wanted, next_head(number, x.k, options));
  const int64_t size = x.q.size(3), queries = h.all_queries, all_keys = h.all_keys,
                wide = round_up(size, panel_columns);
  const Matrix dq = h.of_queries(x.dq);
  const float* lse = x.lse.as<const float>() + h.first_row;
  const bool drops = options.dropout.p > 0;

  using Operand = Operands<Tile>;
  [[maybe_unused]] const typename Tile::Use use;
  const int64_t of_queries = Operand::room(queries, size), of_keys = Operand::room(all_keys, size),
                block = h.block * h.stride, sums = round_up(all_keys, panel_rows) * wide;
  float* next =
      scratch<float>(4 * of_queries + 5 * of_keys + 2 * block + 2 * sums + h.block * wide + h.stride, Workspace::tile);
  const auto take = [&](int64_t count) { return std::exchange(next, next + count); };
  float *scores = take(block), *dp = take(block), *result = take(h.block * wide), *dk = take(sums), *dv = take(sums),
        *factors = take(h.stride);
  const auto by_queries = [&](const View& view) {
    return Operand::by_rows(take(of_queries), h.of_queries(view), h.queries, size, h.order);
  };
  const auto by_keys = [&](const View& view) { return Operand::by_rows(take(of_keys), h.of(view), h.keys, size); };
  const Words query = by_queries(x.q), gradient = by_queries(x.grad_o), key = by_keys(x.k), value = by_keys(x.v);
  const RightWords keys = Operand::transposed(take(of_keys), key), values = Operand::transposed(take(of_keys), value),
                   key_columns = Operand::by_columns(take(of_keys), key);
  float *query_room = take(of_queries), *gradient_room = take(of_queries);
  for (int64_t first = 0; first < queries; first += h.block) {
    const int64_t rows = std::min(h.block, queries - first), exist = std::clamp<int64_t>(h.queries - first, 0, rows);
    if (exist > 0) {
      const int64_t width = h.seen_by(first + exist - 1), whole = round_up(width, panel_rows);
      const auto scores_of = [&](float* out, const Words& left, const RightWords& right, float scale) {
        multiply_words<Tile, Walk::along_rows>({out, exist, h.stride}, width, left.row(first), left.stride, right,
                                               Operand::words(size), scale);
      };
      scores_of(scores, query, keys, options.scale);
      scores_of(dp, gradient, values, 1);
      for (int64_t i = 0; i < exist; ++i) {
        for (const View* view : {&x.q, &x.grad_o}) coming.fetch_queries(*view, first + i, h.queries);
        for (const View* view : {&x.k, &x.v}) coming.fetch_keys(*view, first + i, h.queries);
        for (const View* view : {&x.dk, &x.dv}) h.ask_for_keys(*view, first + i, h.queries);
        h.ask_for_query(x.dq, first + i);
        if (drops) h.draw(factors, site, first + i);
        gradient_row<Tile::steps_per_word == 2>(scores + i * h.stride, dp + i * h.stride, lse[h.row(first + i)],
                                                options.scale, drops ? factors : nullptr, h.seen_by(first + i), whole);
      }
      // The first block, in which a head that has queries has some, begins the sums: also of keys that it does not see,
      // as later ones may.
      if (first == 0)
        for (float* sum : {dk, dv}) std::fill(sum + width * wide, sum + sums, 0.0f);
      // sum = shares^T (rows of this block), or += it
      const auto add_transposed = [&](float* sum, float* shares, const Words& of, float* room) {
        const RightWords right = Operand::by_columns(room, {of.row(first), exist, of.stride});
        const int64_t stride = pack_columns<Tile>(shares, h.stride, exist, whole);
        multiply_words<Tile, Walk::along_columns>({sum, width, wide}, size, shares, stride, right,
                                                  Operand::words(exist), 1, first > 0);
      };
      add_transposed(dv, scores, gradient, gradient_room);
      const float* ds = pack_rows<Tile>(scores, dp, h.stride, exist, width);
      multiply_words<Tile, Walk::along_rows>({result, exist, wide}, size, ds, h.stride, key_columns,
                                             Operand::words(width), 1);
      add_transposed(dk, dp, query, query_room);
    }
    store_rows(dq, first, exist, rows, size, result, wide, h.order);
  }
  const int64_t with_gradient = h.queries > 0 ? h.keys : 0;
  store_rows(h.of(x.dk), 0, with_gradient, all_keys, size, dk, wide);
  store_rows(h.of(x.dv), 0, with_gradient, all_keys, size, dv, wide);
}

void attention_backward(View dq, View dk, View dv, View grad_o, View q, View k, View v, View, View lse,
                        Attention options) {
  const DropoutRecord site(options.dropout);
  const Wanted wanted(options);
  const Tensors tensors{dq, dk, dv, grad_o, q, k, v, lse};
  with_tile(q.dtype, [&]<class Tile>() {
    parallel_for(heads_of(k, options), 1,
                 [&](int64_t number, int64_t) { attend_gradients<Tile>(tensors, options, wanted, site, number); });
  });
}

const InstallSimd here{kernels::attention_backward, attention_backward, floats_of_32_bits};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
