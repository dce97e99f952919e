// self_attention: q, k and v as one projection; or k and v, and the queries of some rows.
#include "cinta/ops/attention.h"

#include <utility>

#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/attention.h"
#include "cinta/ops/attention_core.h"
#include "cinta/ops/check.h"
#include "cinta/ops/embedding.h"
#include "cinta/ops/shape.h"
#include "cinta/ops/tf32.h"

namespace cinta {
namespace {

using autograd::Saved;
using autograd::Sinks;

/// Part `part` of x[B,S,parts*heads*D] as [B,H,S,D]; x[R,parts*heads*D] counts as one sample.
Tensor of_heads(const Tensor& x, int64_t heads, int parts, int part) {
  const int64_t width = x.size(-1) / parts, size = width / heads;
  const bool samples = x.rank() == 3;
  return x.with_layout({samples ? x.size(0) : 1, heads, x.size(-2), size},
                       {samples ? x.strides()[0] : 0, size, x.strides()[x.rank() - 2], 1}, x.offset() + part * width);
}
Tensor with_dense_last(const Tensor& x) { return x.strides()[x.rank() - 1] == 1 ? x : contiguous(x); }

struct SelfAttention {
  static constexpr const char* name = "self_attention";
  AttentionCore core;
  int64_t heads;
  Saved qkv;

  static auto fused_rows() { return AttentionCore::fused_rows(); }
  Tensor of(const Tensor& x, int parts, int part) const { return of_heads(x, heads, parts, part); }
  Tensor forward(const Tensor& in) {
    const Tensor x = with_dense_last(in),
                 out = empty({in.size(0), in.size(1), in.size(2) / 3}, in.dtype(), in.device());
    core.run(of(out, 1, 0), of(x, 3, 0), of(x, 3, 1), of(x, 3, 2));
    return out;
  }
  void save(const Tensor& out, const Tensor& in) {
    core.keep(out);
    qkv.keep(in);
  }
  void backward(const Tensor& dy, Sinks sinks) {
    const Tensor x = with_dense_last(qkv.get()), dout = with_dense_last(dy);
    Tensor dx = empty_like(x);
    kernels::attention_backward(x.device(), of(dx, 3, 0), of(dx, 3, 1), of(dx, 3, 2), of(dout, 1, 0), of(x, 3, 0),
                                of(x, 3, 1), of(x, 3, 2), of(core.output(), 1, 0), core.logsumexp(),
                                core.kept_row(of(x, 3, 0), of(x, 3, 1)));
    sinks[0].put(std::move(dx));
  }
  std::vector<Tensor> inputs() { return {qkv.get()}; }
  Tensor composed(std::span<const Tensor> in) {
    const int64_t batch = in[0].size(0), length = in[0].size(1), width = in[0].size(2) / 3;
    std::vector<Tensor> parts = split(in[0], {width, width, width}, 2);
    for (Tensor& part : parts) part = permute(reshape(part, {batch, length, heads, width / heads}), {0, 2, 1, 3});
    const Tensor out = core.composed(parts[0], parts[1], parts[2]);
    return reshape(permute(out, {0, 2, 1, 3}), {batch, length, width});
  }
};

struct SelfAttentionOfRows {
  static constexpr const char* name = SelfAttention::name;
  AttentionCore core;
  int64_t heads;
  Saved q, kv;

  static auto fused_rows() { return AttentionCore::fused_rows(); }
  Tensor of(const Tensor& x, int parts, int part) const { return of_heads(x, heads, parts, part); }
  Tensor forward(const Tensor& query, const Tensor& keys) {
    const Tensor x = with_dense_last(query), y = with_dense_last(keys), out = empty(x.shape(), x.dtype(), x.device());
    core.run(of(out, 1, 0), of(x, 1, 0), of(y, 2, 0), of(y, 2, 1));
    return out;
  }
  void save(const Tensor& out, const Tensor& query, const Tensor& keys) {
    core.keep(out);
    q.keep(query);
    kv.keep(keys);
  }
  void backward(const Tensor& dy, Sinks sinks) {
    const Tensor x = with_dense_last(q.get()), y = with_dense_last(kv.get()), dout = with_dense_last(dy);
    Tensor dx = empty_like(x), dkv = empty_like(y);
    kernels::attention_backward(x.device(), of(dx, 1, 0), of(dkv, 2, 0), of(dkv, 2, 1), of(dout, 1, 0), of(x, 1, 0),
                                of(y, 2, 0), of(y, 2, 1), of(core.output(), 1, 0), core.logsumexp(),
                                core.kept_row(of(x, 1, 0), of(y, 2, 0)));
    if (sinks[0].wanted()) sinks[0].put(std::move(dx));
    if (sinks[1].wanted()) sinks[1].put(std::move(dkv));
  }
  std::vector<Tensor> inputs() { return {q.get(), kv.get()}; }
  /// Each row is a sample of one query, with the keys and values of its own.
  Tensor composed(std::span<const Tensor> in) {
    const int64_t count = in[0].size(0), length = in[1].size(1), width = in[0].size(1), size = width / heads;
    const AttentionExtent extent = core.extent();
    for (const Tensor& option : {extent.rows, extent.lengths}) autograd::note_read(name, option);
    const std::vector<int64_t> numbers = to_vector<int64_t>(extent.rows);
    const Tensor& lengths = extent.lengths;
    const std::vector<int32_t> ends = lengths ? to_vector<int32_t>(lengths) : std::vector<int32_t>();
    std::vector<int64_t> sample, of_mask;
    std::vector<int32_t> position, end;
    for (const int64_t number : numbers) {
      require(number >= 0 && number < in[1].size(0) * length, name, Where(), "rows are positions in kv, 0 .. ",
              in[1].size(0) * length - 1, ", given ", number);
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
    const Tensor out =
        core.composed(reshape(in[0], {count, heads, 1, size}), parts[0], parts[1],
                      {from_values(position, one_each, device), lengths ? from_values(end, one_each, device) : Tensor(),
                       core.dropout().of_rows(from_values(of_mask, {count * heads}, device), heads * length)});
    return reshape(out, {count, width});
  }
};

/// `rows`, which are positions of kv[B,S,..], where the host can see them; the kernels leave others out.
Tensor checked_rows(const char* op, const Tensor& rows, const Tensor& kv, Where where) {
  const int64_t positions = kv.size(0) * kv.size(1);
  if (host_sees(rows))
    for (const int64_t row : rows.data<int64_t>(where))
      require(row >= 0 && row < positions, op, where, "rows are positions in kv, 0 .. ", positions - 1, ", given ",
              row);
  return rows;
}

}  // namespace

Tensor self_attention(const Tensor& qkv, int heads, const AttentionOptions& options, Where where) {
  constexpr const char* op = "self_attention";
  check_floating(kernels::attention, op, "qkv", qkv, where);
  require(heads > 0, op, where, "at least one head, given ", heads);
  require<ShapeError>(qkv.rank() == 3 && qkv.size(2) > 0 && qkv.size(2) % (int64_t{3} * heads) == 0, op, where,
                      "qkv[B,S,3*heads*D] for ", heads, " heads, given ", qkv);
  SelfAttention self{
      AttentionCore(op, options, qkv, qkv.size(1), qkv.size(2) / (int64_t{3} * heads), where), heads, {}};
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
  SelfAttentionOfRows self{AttentionCore(op, options, kv, kv.size(1), q.size(1) / heads, where), heads, {}, {}};
  self.core.take_queries(checked_rows(op, contiguous(detach(rows)), kv, where));
  if (multiplies_tf32(op, q, where)) [[unlikely]]
    return tf32_result(autograd::apply(std::move(self), where, tf32_operand(q, where), tf32_operand(kv, where)), where);
  return autograd::apply(std::move(self), where, q, kv);
}

}  // namespace cinta
