// Attention forward: for every head of every sequence, blocks of queries whose scores stay in the second-level cache.
#include "cinta/backends/cpu/simd/attention.h"

#include <utility>

#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/rows.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

using kernels::Attention;

struct LargestAndSum {
  float largest, sum;
};

/// Scores to e^(score - largest), masked; what lies beyond `seen` becomes 0. The sum is that before the mask.
template <bool narrow>
LargestAndSum softmax_row(float* scores, int64_t seen, int64_t width, const float* factors) {
  const float largest = reduce_array<MaxOfNumbers>(scores, seen);
  const float sum = !factors ? exp_and_sum<narrow>(scores, scores, largest, seen) : sum_of(seen, [=](int64_t t) {
    const float share = math::exp_below_for<narrow>(scores[t] - largest);
    scores[t] = masked(share, factors[t]);
    return share;
  });
  std::fill(scores + seen, scores + width, 0.0f);
  return {largest, sum};
}

template <class Tile>
void attend(const View& o, const View& lse, const View& q, const View& k, const View& v, const Attention& options,
            const Wanted& wanted, const DropoutRecord& site, int64_t number) {
  const Head h(q, k, options, wanted, number);
  if (h.all_queries == 0) return;
  const Head coming(q, k, options, wanted, next_head(number, k, options));
  const int64_t size = q.size(3), all_queries = h.all_queries, all_keys = h.all_keys,
                wide = round_up(size, panel_columns);
  const Matrix out = h.of_queries(o);
  float* row_lse = lse.as<float>() + h.first_row;
  const bool drops = options.dropout.p > 0;

  using Operand = Operands<Tile>;
  [[maybe_unused]] const typename Tile::Use use;
  const int64_t of_queries = Operand::room(all_queries, size), of_keys = Operand::room(all_keys, size),
                block = h.block * h.stride;
  float* next = scratch<float>(of_queries + 4 * of_keys + block + h.block * (wide + 4) + h.stride, Workspace::tile);
  const auto take = [&](int64_t count) { return std::exchange(next, next + count); };
  float *scores = take(block), *result = take(h.block * wide), *query_room = take(of_queries),
        *key_room = take(of_keys), *keys_room = take(of_keys), *value_room = take(of_keys),
        *values_room = take(of_keys), *factors = take(h.stride), *largest = take(h.block), *sum = take(h.block),
        *logsumexp = take(h.block), *inverse_sum = take(h.block);
  const Words query = Operand::by_rows(query_room, h.of_queries(q), h.queries, size, h.order);
  const RightWords keys = Operand::transposed(keys_room, Operand::by_rows(key_room, h.of(k), h.keys, size)),
                   values = Operand::by_columns(values_room, Operand::by_rows(value_room, h.of(v), h.keys, size));
  for (int64_t first = 0; first < all_queries; first += h.block) {
    const int64_t rows = std::min(h.block, all_queries - first),
                  exist = std::clamp<int64_t>(h.queries - first, 0, rows);
    for (int64_t i = exist; i < rows; ++i) row_lse[h.row(first + i)] = 0;
    if (exist > 0) {
      const int64_t width = h.seen_by(first + exist - 1);
      multiply_words<Tile, Walk::along_rows>({scores, exist, h.stride}, width, query.row(first), query.stride, keys,
                                             Operand::words(size), options.scale);
      for (int64_t i = 0; i < exist; ++i) {
        coming.fetch_queries(q, first + i, h.queries);
        coming.fetch_keys(k, first + i, h.queries);
        coming.fetch_keys(v, first + i, h.queries);
        h.ask_for_query(o, first + i);
        if (drops) h.draw(factors, site, first + i);
        const auto [row_largest, row_sum] = softmax_row<Tile::steps_per_word == 2>(
            scores + i * h.stride, h.seen_by(first + i), width, drops ? factors : nullptr);
        largest[i] = row_largest;
        sum[i] = row_sum;
      }
      // Of all rows at once: one at a time, a logarithm takes as long as 64 scores.
#pragma omp simd
      for (int64_t i = 0; i < exist; ++i) {
        logsumexp[i] = largest[i] + math::log(sum[i]);
        inverse_sum[i] = 1 / sum[i];
      }
      for (int64_t i = 0; i < exist; ++i) row_lse[h.row(first + i)] = logsumexp[i];
      const float* probabilities = pack_rows<Tile>(scores, scores, h.stride, exist, width);
      multiply_words<Tile, Walk::along_rows>({result, exist, wide}, size, probabilities, h.stride, values,
                                             Operand::words(width), 1);
      for (int64_t i = 0; i < exist; ++i)
        for (int64_t d = 0; d < size; ++d) result[i * wide + d] *= inverse_sum[i];
    }
    store_rows(out, first, exist, rows, size, result, wide, h.order);
  }
}

void attention(View o, View lse, View q, View k, View v, Attention options) {
  const DropoutRecord site(options.dropout);
  const Wanted wanted(options);
  with_tile(q.dtype, [&]<class Tile>() {
    parallel_for(heads_of(k, options), 1,
                 [&](int64_t number, int64_t) { attend<Tile>(o, lse, q, k, v, options, wanted, site, number); });
  });
}

const InstallSimd here{kernels::attention, attention, floats_of_32_bits};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
