// Attention forward: for every head of every sequence, blocks of queries whose scores stay in the second-level cache.
#include <utility>

#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/attention_columns.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

using kernels::Attention;

/// Columns of scores to e^(scale (score - largest)), masked by the factors, if any; what no query sees becomes 0 up to
/// row `rows`. The sum is that before the mask.
template <bool narrow>
void softmax_columns(float* scores, int64_t stride, float scale, const Seen& seen, int64_t rows, const Factors* factors,
                     float* largest, float* sum, RowsAhead& ahead) {
  seen.hide(scores, stride);
  largest_of_columns(largest, scores, stride, seen.by_some);
  float most[lanes];
  std::copy_n(largest, lanes, most);
  const auto share = [=](int64_t t, int64_t j) {
    return math::exp_below_for<narrow>(scale * (scores[t * stride + j] - most[j]));
  };
  if (factors)
    sum_columns(sum, seen.by_some, [&](int64_t t) {
      ahead.fetch();
      return [&, factor = factors->row(t), row = scores + t * stride, t](int64_t j) {
        const float e = share(t, j);
        row[j] = masked(e, factor[j]);
        return e;
      };
    });
  else
    sum_columns(sum, seen.by_some, [&](int64_t t) {
      ahead.fetch();
      return [&, row = scores + t * stride, t](int64_t j) { return row[j] = share(t, j); };
    });
  seen.clear(scores, stride, rows);
}

template <class Tile>
void attend(const View& o, const View& lse, const View& q, const View& k, const View& v, const Attention& options,
            const Wanted& wanted, const DropoutRecord& site, int64_t number) {
  const Head h(q, k, options, wanted, number);
  if (h.all_queries == 0) return;
  const Head coming(q, k, options, wanted, next_head(number, k, options));
  const int64_t size = q.size(3), all_queries = h.all_queries, wide = round_up(size, panel_columns);
  const Matrix out = h.of_queries(o);
  float* row_lse = lse.as<float>() + h.first_row;
  const bool drops = options.dropout.p > 0;

  using Operand = Operands<Tile>;
  [[maybe_unused]] const typename Tile::Use use;
  const int64_t of_queries = Operand::room(all_queries, size), of_keys = Operand::room(h.all_keys, size),
                of_factors = drops ? Factors::room(h.all_keys) : 0, of_down = Operand::down_room(h.all_keys, h.block);
  float* next = scratch<float>(2 * of_queries + 3 * of_keys + h.room + of_down + h.block * (wide + 4) + of_factors,
                               Workspace::tile);
  const auto take = [&](int64_t count) { return std::exchange(next, next + count); };
  float *scores = take(h.room), *down_room = take(of_down), *result = take(h.block * wide), *largest = take(h.block),
        *sum = take(h.block), *logsumexp = take(h.block), *inverse_sum = take(h.block);
  const Factors factors(take(of_factors), h.all_keys);
  const Words key = Operand::by_rows(take(of_keys), h.of(k), h.keys, size);
  const RightWords queries = Operand::transposed(
                       take(of_queries), Operand::to_pack(take(of_queries), h.of_queries(q), h.queries, size, h.order),
                       size),
                   values =
                       Operand::by_columns(take(of_keys), Operand::to_pack(take(of_keys), h.of(v), h.keys, size), size);
  RowsAhead ahead;
  ahead.write(out, h.queries, h.order);
  ahead.read(coming.of_queries(q), coming.queries, coming.order);
  for (const View* view : {&k, &v}) ahead.read(coming.of(*view), coming.keys);
  ahead.spread(Head::row_bytes(q), h.keys * ((h.queries + lanes - 1) / lanes));

  for (int64_t first = 0; first < all_queries; first += h.block) {
    const int64_t rows = std::min(h.block, all_queries - first),
                  exist = std::clamp<int64_t>(h.queries - first, 0, rows);
    for (int64_t i = exist; i < rows; ++i) row_lse[h.row(first + i)] = 0;
    if (exist > 0) {
      const int64_t width = h.seen_by(first + exist - 1);
      multiply_words<Tile>({scores, width, h.stride}, exist, Left<Walk::along_rows>{key.data, key.stride},
                           queries.from_column(first), Operand::words(size));
      for (int64_t i = 0; i < exist; i += lanes) {
        const int64_t count = std::min(lanes, exist - i);
        if (drops) factors.draw(h, site, first + i, count);
        softmax_columns<Tile::steps_per_word == 2>(scores + i, h.stride, options.scale, Seen(h, first + i, count),
                                                   round_up(width, panel_columns), drops ? &factors : nullptr,
                                                   largest + i, sum + i, ahead);
      }
#pragma omp simd
      for (int64_t i = 0; i < exist; ++i) {
        logsumexp[i] = options.scale * largest[i] + math::log(sum[i]);
        inverse_sum[i] = 1 / sum[i];
      }
      for (int64_t i = 0; i < exist; ++i) row_lse[h.row(first + i)] = logsumexp[i];
      multiply_words<Tile>({result, exist, wide}, size, Operand::down(down_room, scores, h.stride, width, exist),
                           values, Operand::words(width));
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
