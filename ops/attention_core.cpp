// The options that ops of attention share, checked; and attention written with other ops.
#include "cinta/ops/attention_core.h"

#include <cmath>
#include <utility>

#include "cinta/core/context.h"
#include "cinta/ops/check.h"
#include "cinta/ops/dropout.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/rows.h"
#include "cinta/ops/shape.h"
#include "cinta/ops/softmax.h"

namespace cinta {
namespace {

using autograd::Saved;

/// 0, 1, .. count - 1 as i32, of the given shape.
Tensor positions(int64_t count, const Shape& shape, Device device) {
  return reshape(cast(arange(count, 0, 1, device), Dtype::i32), shape);
}

/// Lengths between none and the sample's whole `length`, where the host can see them.
void check_lengths(const char* op, const Tensor& lengths, int64_t length, Where where) {
  if (!lengths || !host_sees(lengths)) return;
  for (const int32_t given : lengths.data<int32_t>(where))
    require(given >= 0 && given <= length, op, where, "lengths lie in [0, ", length, "], given ", given);
}

/// Offsets that begin with 0, do not fall and end within the sample's `length`, where the host can see them; the
/// kernels clamp others, but leave out what lies before the first.
void check_offsets(const char* op, const Tensor& offsets, int64_t length, Where where) {
  if (!offsets || !host_sees(offsets)) return;
  int32_t before = 0;
  for (const int32_t offset : offsets.data<int32_t>(where)) {
    require(offset >= before && offset <= length && offsets.data<int32_t>(where)[0] == 0, op, where,
            "offsets begin with 0, do not fall and end within the sample's ", length, ", given ", offset, " after ",
            before);
    before = offset;
  }
}

}  // namespace

bool host_sees(const Tensor& index) { return runtime_of(index.device()).host_accessible() && !context().captures(); }

AttentionCore::AttentionCore(const char* op, const AttentionOptions& options, const Tensor& x, int64_t length,
                             int64_t size, Where where)
    : op_(op), causal_(options.causal) {
  require(options.scale >= 0, op, where, "scale is not negative, given ", options.scale);
  if (options.lengths) {
    check_index(op, "lengths", options.lengths, Dtype::i32, x, where);
    require<ShapeError>(options.lengths.shape() == Shape{x.size(0)}, op, where, "lengths[B], one a sample of ", x,
                        ", given ", options.lengths);
  }
  if (options.offsets) {
    check_index(op, "offsets", options.offsets, Dtype::i32, x, where);
    require(!options.lengths, op, where, "lengths or offsets, not both");
    require<ShapeError>(options.offsets.rank() == 1 && options.offsets.numel() > 0 && x.size(0) == 1, op, where,
                        "offsets[N+1] of N sequences in one sample, given ", options.offsets, " for ", x);
  }
  check_dropout(op, options.dropout, x, where);
  require(!options.dropout.rows, op, where, "the dropout is of all rows, given ", options.dropout.rows);
  scale_ = static_cast<float>(options.scale > 0 ? options.scale : 1 / std::sqrt(static_cast<double>(size)));
  require(scale_ > 0, op, where, "scale is 0, for 1/sqrt(D), or more than 0 in f32, given ", options.scale);
  draw_ = Draw(options.dropout);
  given_ = {dense(detach(options.lengths)), dense(detach(options.offsets)), {}};
  check_lengths(op, given_.lengths, length, where);
  check_offsets(op, given_.offsets, length, where);
}

kernels::Attention AttentionCore::row(const AttentionExtent& extent, const Tensor& q, const Tensor& k) const {
  const int64_t rows_a_sample = rows_per_sample(extent.rows ? k : q);
  return {
      scale_, causal_, extent.lengths.view(), extent.offsets.view(), dropout().row(rows_a_sample), extent.rows.view()};
}

AttentionExtent AttentionCore::extent() {
  const auto get = [](Saved& saved, const Tensor& given) { return saved ? saved.get() : given; };
  return {get(lengths_, given_.lengths), get(offsets_, given_.offsets), get(rows_, given_.rows)};
}

kernels::Attention AttentionCore::kept_row(const Tensor& q, const Tensor& k) { return row(extent(), q, k); }

void AttentionCore::run(const Tensor& out, const Tensor& q, const Tensor& k, const Tensor& v) {
  for (const Tensor& option : {given_.lengths, given_.offsets, given_.rows}) autograd::note_read(op_, option);
  given_lse_ = empty({q.size(0), q.size(1), q.size(2)}, statistics_type(q.dtype()), q.device());
  kernels::attention(q.device(), out, given_lse_, q, k, v, row(given_, q, k));
}

void AttentionCore::keep(const Tensor& out) {
  o_.keep(out);
  lse_.keep(std::exchange(given_lse_, {}));
  lengths_.keep(std::exchange(given_.lengths, {}));
  offsets_.keep(std::exchange(given_.offsets, {}));
  rows_.keep(std::exchange(given_.rows, {}));
}

Tensor AttentionCore::composed(const Tensor& q, const Tensor& k, const Tensor& v) {
  const int64_t queries = q.size(2);
  const Tensor lengths = extent().lengths;
  return composed(q, k, v,
                  {positions(queries, {1, 1, queries, 1}, q.device()),
                   lengths ? reshape(lengths, {q.size(0), 1, 1, 1}) : Tensor(), dropout()});
}

Tensor AttentionCore::composed(const Tensor& low_q, const Tensor& low_k, const Tensor& low_v,
                               const AttentionSight& sight) {
  const Dtype wide = statistics_type(low_q.dtype());  // scores may lie beyond what f16 holds
  Tensor q = cast(low_q, wide), k = cast(low_k, wide), v = cast(low_v, wide);
  const int64_t keys = k.size(2);
  const Device device = q.device();
  const Tensor key = positions(keys, {1, 1, 1, keys}, device), &query = sight.query;
  const Tensor never = full({}, -INFINITY, q.dtype(), device), zero = full({}, 0, q.dtype(), device);
  Tensor ends, exists, hidden;
  if (sight.lengths) {
    ends = sight.lengths;
    hidden = greater_equal(key, ends);
  } else if (const Tensor offsets = extent().offsets) {
    const Tensor begin = reshape(offsets, {offsets.numel(), 1, 1, 1, 1}),
                 end = slice(begin, 0, begin.size(0) - 1, begin.size(0));
    // Counted in f32, in which 2^24 sequences count.
    const auto begun = [&](const Tensor& at) { return sum(cast(greater_equal(at, begin), Dtype::f32), {0}); };
    ends = reshape(end, {1, 1, 1, 1});
    hidden = not_equal(begun(key), begun(query));
  }
  if (ends) {
    // A gradient of 0 times what lies where no position is would not be 0, were that no number.
    exists = less(query, ends);
    const Tensor kept = less(reshape(key, {1, 1, keys, 1}), ends);
    q = where(exists, q, zero);
    k = where(kept, k, zero);
    v = where(kept, v, zero);
  }
  Tensor scores = matmul(q, transpose(k, 2, 3)) * scale_;
  if (causal_) scores = where(less_equal(key, query), scores, never);
  // The scores of a query that does not exist stay finite, so that no row is all -inf; its output is cut below.
  if (exists) scores = where(hidden, where(exists, never, zero), scores);
  Tensor out = matmul(cinta::dropout(softmax(scores), sight.dropout), v);
  if (exists) out = where(exists, out, zero);
  return cast(out, low_q.dtype());
}

}  // namespace cinta
