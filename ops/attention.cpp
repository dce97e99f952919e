// attention and self_attention: three ways of holding q, k and v, one kernel row, one composed form.
#include "cinta/ops/attention.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/attention.h"
#include "cinta/core/context.h"
#include "cinta/ops/check.h"
#include "cinta/ops/dropout.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/embedding.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/rows.h"
#include "cinta/ops/shape.h"
#include "cinta/ops/softmax.h"
#include "cinta/ops/tf32.h"

namespace cinta {
namespace {

using autograd::Saved;
using autograd::Sinks;

/// 0, 1, .. count - 1 as i32, of the given shape.
Tensor positions(int64_t count, const Shape& shape, Device device) {
  std::vector<int32_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return from_values(numbers, shape, device);
}

/// Uninitialised [B,H,S,D] that lies as [B,S,H,D].
Tensor empty_heads(const Shape& shape, Dtype dtype, Device device) {
  const Tensor flat = empty({shape[0], shape[2], shape[1], shape[3]}, dtype, device);
  return flat.with_layout(shape, {flat.strides()[0], flat.strides()[2], flat.strides()[1], 1}, 0);
}

/// The kernel wants the last dimension contiguous; the others may lie anyhow.
Tensor with_dense_rows(const Tensor& x) { return x.strides()[3] == 1 || x.size(3) <= 1 ? x : contiguous(x); }

/// Part `part` of x[B,S,parts*heads*D] as [B,H,S,D]; x[R,parts*heads*D] counts as one sample.
Tensor of_heads(const Tensor& x, int64_t heads, int parts, int part) {
  const int64_t width = x.size(-1) / parts, size = width / heads;
  const bool samples = x.rank() == 3;
  return x.with_layout({samples ? x.size(0) : 1, heads, x.size(-2), size},
                       {samples ? x.strides()[0] : 0, size, x.strides()[x.rank() - 2], 1}, x.offset() + part * width);
}
Tensor with_dense_last(const Tensor& x) { return x.strides()[x.rank() - 1] == 1 ? x : contiguous(x); }

/// What says which queries and keys there are.
struct Extent {
  Tensor lengths, offsets, rows;
};

/// Which keys the queries of composed() see.
struct Sight {
  Tensor query;         ///< i32, their positions in the sample, aligned with the scores
  Tensor lengths;       ///< of their samples, aligned with the scores; absent: options have none
  DropoutSite dropout;  ///< of the probabilities
};

/// What the ops share: options, and what is kept beside q, k, v.
struct Core {
  bool causal;
  float scale;
  Draw draw;
  Saved lengths, offsets, rows, o, lse;
  Extent given;  // between forward and save, as is
  Tensor out_lse;

  kernels::Attention row(const char* op, const Extent& extent, const Tensor& q, const Tensor& k) const {
    const Tensor& whole = extent.rows ? k : q;
    return {scale,
            causal,
            extent.lengths.view(),
            extent.offsets.view(),
            draw.again(op).row(rows_per_sample(whole)),
            extent.rows.view()};
  }
  kernels::Attention saved_row(const char* op, const Tensor& q, const Tensor& k) {
    const auto get = [](Saved& saved) { return saved ? saved.get() : Tensor(); };
    return row(op, {get(lengths), get(offsets), get(rows)}, q, k);
  }
  void run(const char* op, const Tensor& out, const Tensor& q, const Tensor& k, const Tensor& v) {
    out_lse = empty({q.size(0), q.size(1), q.size(2)}, statistics_type(q.dtype()), q.device());
    kernels::attention(q.device(), out, out_lse, q, k, v, row(op, given, q, k));
  }
  void keep(const Tensor& out) {
    o.keep(out);
    lse.keep(std::exchange(out_lse, {}));
    lengths.keep(std::exchange(given.lengths, {}));
    offsets.keep(std::exchange(given.offsets, {}));
    rows.keep(std::exchange(given.rows, {}));
  }

  /// The same with ops, the matrix of probabilities written out.
  Tensor composed(const char* op, const Tensor& q, const Tensor& k, const Tensor& v) {
    const int64_t queries = q.size(2);
    return composed(q, k, v,
                    {positions(queries, {1, 1, queries, 1}, q.device()),
                     lengths ? reshape(lengths.get(), {q.size(0), 1, 1, 1}) : Tensor(), draw.again(op)});
  }
  Tensor composed(const Tensor& q, const Tensor& k, const Tensor& v, const Sight& sight) {
    const int64_t keys = k.size(2);
    const Device device = q.device();
    const Tensor key = positions(keys, {1, 1, 1, keys}, device), &query = sight.query;
    const Tensor never = full({}, -INFINITY, q.dtype(), device), zero = full({}, 0, q.dtype(), device);
    Tensor scores = matmul(q, transpose(k, 2, 3)) * scale;
    if (causal) scores = cinta::where(less_equal(key, query), scores, never);
    Tensor exists, hidden;
    if (sight.lengths) {
      exists = less(query, sight.lengths);
      hidden = greater_equal(key, sight.lengths);
    } else if (offsets) {
      const Tensor begin = reshape(offsets.get(), {offsets.get().numel(), 1, 1, 1, 1}),
                   end = slice(begin, 0, begin.size(0) - 1, begin.size(0));
      const auto begun = [&](const Tensor& at) { return sum(cast(greater_equal(at, begin), q.dtype()), {0}); };
      exists = less(query, reshape(end, {1, 1, 1, 1}));
      hidden = not_equal(begun(key), begun(query));
    }
    // The scores of a query that does not exist stay finite, so that no row is all -inf; its output is cut below.
    if (exists) scores = cinta::where(hidden, cinta::where(exists, never, zero), scores);
    Tensor out = matmul(dropout(softmax(scores), sight.dropout), v);
    if (exists) out = cinta::where(exists, out, zero);
    return out;
  }
};

struct Attention : Core {
  static constexpr const char* name = "attention";
  Saved q, k, v;
  Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value) {
    const Tensor out = empty_heads(query.shape(), query.dtype(), query.device());
    run(name, out, with_dense_rows(query), with_dense_rows(key), with_dense_rows(value));
    return out;
  }
  void save(const Tensor& out, const Tensor& query, const Tensor& key, const Tensor& value) {
    keep(out);
    q.keep(query);
    k.keep(key);
    v.keep(value);
  }
  void backward(const Tensor& dy, Sinks sinks) {
    const Tensor query = with_dense_rows(q.get()), key = with_dense_rows(k.get()), value = with_dense_rows(v.get());
    Tensor dq = empty_heads(query.shape(), query.dtype(), query.device()),
           dk = empty_heads(key.shape(), key.dtype(), key.device()),
           dv = empty_heads(key.shape(), key.dtype(), key.device());
    kernels::attention_backward(query.device(), dq, dk, dv, with_dense_rows(dy), query, key, value, o.get(), lse.get(),
                                saved_row(name, query, key));
    if (sinks[0].wanted()) sinks[0].put(std::move(dq));
    if (sinks[1].wanted()) sinks[1].put(std::move(dk));
    if (sinks[2].wanted()) sinks[2].put(std::move(dv));
  }
  std::vector<Tensor> inputs() { return {q.get(), k.get(), v.get()}; }
  Tensor composed(std::span<const Tensor> in) { return Core::composed(name, in[0], in[1], in[2]); }
};

struct SelfAttention : Core {
  static constexpr const char* name = "self_attention";
  int64_t heads;
  Saved qkv;

  Tensor of(const Tensor& x, int parts, int part) const { return of_heads(x, heads, parts, part); }
  Tensor forward(const Tensor& in) {
    const Tensor x = with_dense_last(in),
                 out = empty({in.size(0), in.size(1), in.size(2) / 3}, in.dtype(), in.device());
    run(name, of(out, 1, 0), of(x, 3, 0), of(x, 3, 1), of(x, 3, 2));
    return out;
  }
  void save(const Tensor& out, const Tensor& in) {
    keep(out);
    qkv.keep(in);
  }
  void backward(const Tensor& dy, Sinks sinks) {
    const Tensor x = with_dense_last(qkv.get()), dout = with_dense_last(dy);
    Tensor dx = empty_like(x);
    kernels::attention_backward(x.device(), of(dx, 3, 0), of(dx, 3, 1), of(dx, 3, 2), of(dout, 1, 0), of(x, 3, 0),
                                of(x, 3, 1), of(x, 3, 2), of(o.get(), 1, 0), lse.get(),
                                saved_row(name, of(x, 3, 0), of(x, 3, 1)));
    sinks[0].put(std::move(dx));
  }
  std::vector<Tensor> inputs() { return {qkv.get()}; }
  Tensor composed(std::span<const Tensor> in) {
    const int64_t batch = in[0].size(0), length = in[0].size(1), width = in[0].size(2) / 3;
    std::vector<Tensor> parts = split(in[0], {width, width, width}, 2);
    for (Tensor& part : parts) part = permute(reshape(part, {batch, length, heads, width / heads}), {0, 2, 1, 3});
    const Tensor out = Core::composed(name, parts[0], parts[1], parts[2]);
    return reshape(permute(out, {0, 2, 1, 3}), {batch, length, width});
  }
};

struct SelfAttentionOfRows : Core {
  static constexpr const char* name = SelfAttention::name;
  int64_t heads;
  Saved q, kv;

  Tensor of(const Tensor& x, int parts, int part) const { return of_heads(x, heads, parts, part); }
  Tensor forward(const Tensor& query, const Tensor& keys) {
    const Tensor x = with_dense_last(query), y = with_dense_last(keys), out = empty(x.shape(), x.dtype(), x.device());
    run(name, of(out, 1, 0), of(x, 1, 0), of(y, 2, 0), of(y, 2, 1));
    return out;
  }
  void save(const Tensor& out, const Tensor& query, const Tensor& keys) {
    keep(out);
    q.keep(query);
    kv.keep(keys);
  }
  void backward(const Tensor& dy, Sinks sinks) {
    const Tensor x = with_dense_last(q.get()), y = with_dense_last(kv.get()), dout = with_dense_last(dy);
    Tensor dx = empty_like(x), dkv = empty_like(y);
    kernels::attention_backward(x.device(), of(dx, 1, 0), of(dkv, 2, 0), of(dkv, 2, 1), of(dout, 1, 0), of(x, 1, 0),
                                of(y, 2, 0), of(y, 2, 1), of(o.get(), 1, 0), lse.get(),
                                saved_row(name, of(x, 1, 0), of(y, 2, 0)));
    if (sinks[0].wanted()) sinks[0].put(std::move(dx));
    if (sinks[1].wanted()) sinks[1].put(std::move(dkv));
  }
  std::vector<Tensor> inputs() { return {q.get(), kv.get()}; }
  /// Each row is a sample of one query, with the keys and values of its own.
  Tensor composed(std::span<const Tensor> in) {
    const int64_t count = in[0].size(0), length = in[1].size(1), width = in[0].size(1), size = width / heads;
    const std::vector<int64_t> numbers = to_vector<int64_t>(rows.get());
    const std::vector<int32_t> ends = lengths ? to_vector<int32_t>(lengths.get()) : std::vector<int32_t>();
    std::vector<int64_t> sample, of_mask;
    std::vector<int32_t> position, end;
    for (const int64_t number : numbers) {
      sample.push_back(number / length);
      position.push_back(static_cast<int32_t>(number % length));
      if (lengths) end.push_back(ends[static_cast<size_t>(sample.back())]);
      for (int64_t head = 0; head < heads; ++head)
        of_mask.push_back((sample.back() * heads + head) * length + number % length);
    }
    const Device device = in[0].device();
    const Tensor keys =
        gather_rows(reshape(in[1], {in[1].size(0), length * 2 * width}), from_values(sample, {count}, device));
    std::vector<Tensor> parts = split(reshape(keys, {count, length, 2 * width}), {width, width}, 2);
    for (Tensor& part : parts) part = permute(reshape(part, {count, length, heads, size}), {0, 2, 1, 3});
    const Shape one_each{count, 1, 1, 1};
    const Tensor out = Core::composed(
        reshape(in[0], {count, heads, 1, size}), parts[0], parts[1],
        {from_values(position, one_each, device), lengths ? from_values(end, one_each, device) : Tensor(),
         draw.again(name).of_rows(from_values(of_mask, {count * heads}, device), heads * length)});
    return reshape(out, {count, width});
  }
};

/// Whether the numbers of an index can be looked at where they lie, now.
bool host_sees(const Tensor& index) { return runtime_of(index.device()).host_accessible() && !context().captures(); }

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

/// Rows that are positions of kv, where the host can see them; the kernels leave others out.
void check_query_rows(const char* op, const Tensor& rows, int64_t positions, Where where) {
  if (!host_sees(rows)) return;
  for (const int64_t row : rows.data<int64_t>(where))
    require(row >= 0 && row < positions, op, where, "rows are positions in kv, 0 .. ", positions - 1, ", given ", row);
}

template <class Op>
Op with_options(const char* op, const AttentionOptions& options, const Tensor& x, int64_t length, int64_t size,
                Where where) {
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
  Op out{};
  out.causal = options.causal;
  out.scale = static_cast<float>(options.scale > 0 ? options.scale : 1 / std::sqrt(static_cast<double>(size)));
  out.draw = Draw(options.dropout);
  out.given.lengths = dense(detach(options.lengths));
  out.given.offsets = dense(detach(options.offsets));
  check_offsets(op, out.given.offsets, length, where);
  return out;
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options, Where where) {
  constexpr const char* op = "attention";
  check_floating(kernels::attention, op, "q", q, where);
  check_like(op, "k", k, q, where);
  check_like(op, "v", v, q, where);
  require<ShapeError>(q.rank() == 4 && q.size(3) > 0, op, where, "q[B,H,S,D] with D > 0, given ", q);
  require<ShapeError>(k.rank() == 4 && k.size(0) == q.size(0) && k.size(1) == q.size(1) && k.size(3) == q.size(3), op,
                      where, "k[B,H,T,D] for q[B,H,S,D]: q ", q, ", k ", k);
  require<ShapeError>(v.shape() == k.shape(), op, where, "k and v have one shape: ", k, " and ", v);
  require<ShapeError>(!options.offsets || k.size(2) == q.size(2), op, where, "offsets cut q and k alike: q ", q, ", k ",
                      k);
  Attention self = with_options<Attention>(op, options, q, q.size(2), q.size(3), where);
  if (multiplies_tf32(op, q, where)) [[unlikely]]
    return tf32_result(
        autograd::apply(std::move(self), where, tf32_operand(q, where), tf32_operand(k, where), tf32_operand(v, where)),
        where);
  return autograd::apply(std::move(self), where, q, k, v);
}

Tensor self_attention(const Tensor& qkv, int heads, const AttentionOptions& options, Where where) {
  constexpr const char* op = "self_attention";
  check_floating(kernels::attention, op, "qkv", qkv, where);
  require(heads > 0, op, where, "at least one head, given ", heads);
  require<ShapeError>(qkv.rank() == 3 && qkv.size(2) > 0 && qkv.size(2) % (3 * heads) == 0, op, where,
                      "qkv[B,S,3*heads*D] for ", heads, " heads, given ", qkv);
  SelfAttention self = with_options<SelfAttention>(op, options, qkv, qkv.size(1), qkv.size(2) / (3 * heads), where);
  self.heads = heads;
  if (multiplies_tf32(op, qkv, where)) [[unlikely]]
    return tf32_result(autograd::apply(std::move(self), where, tf32_operand(qkv, where)), where);
  return autograd::apply(std::move(self), where, qkv);
}

Tensor self_attention(const Tensor& q, const Tensor& kv, const Tensor& rows, int heads, const AttentionOptions& options,
                      Where where) {
  constexpr const char* op = "self_attention";
  check_floating(kernels::attention, op, "q", q, where);
  check_like(op, "kv", kv, q, where);
  check_index(op, "rows", rows, Dtype::i64, q, where);
  require(heads > 0, op, where, "at least one head, given ", heads);
  require<ShapeError>(q.rank() == 2 && q.size(1) > 0 && q.size(1) % heads == 0, op, where, "q[R,heads*D] for ", heads,
                      " heads, given ", q);
  require<ShapeError>(kv.rank() == 3 && kv.size(2) == 2 * q.size(1), op, where,
                      "kv[B,S,2*heads*D] for q[R,heads*D]: q ", q, ", kv ", kv);
  require<ShapeError>(rows.rank() == 1 && rows.size(0) == q.size(0), op, where, "rows[R], one each of ", q, ", given ",
                      rows);
  auto self = with_options<SelfAttentionOfRows>(op, options, kv, kv.size(1), q.size(1) / heads, where);
  self.heads = heads;
  self.given.rows = contiguous(detach(rows));
  check_query_rows(op, self.given.rows, kv.size(0) * kv.size(1), where);
  if (multiplies_tf32(op, q, where)) [[unlikely]]
    return tf32_result(autograd::apply(std::move(self), where, tf32_operand(q, where), tf32_operand(kv, where)), where);
  return autograd::apply(std::move(self), where, q, kv);
}

}  // namespace cinta
