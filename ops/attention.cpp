// attention: q, k and v as tensors of their own.
#include "cinta/ops/attention.h"

#include <algorithm>
#include <utility>

#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/attention.h"
#include "cinta/ops/attention_core.h"
#include "cinta/ops/check.h"
#include "cinta/ops/shape.h"
#include "cinta/ops/tf32.h"

namespace cinta {
namespace {

using autograd::Saved;
using autograd::Sinks;

/// Uninitialised [B,H,S,D] that lies as [B,S,H,D].
Tensor empty_heads(const Shape& shape, Dtype dtype, Device device) {
  const Tensor flat = empty({shape[0], shape[2], shape[1], shape[3]}, dtype, device);
  return flat.with_layout(shape, {flat.strides()[0], flat.strides()[2], flat.strides()[1], 1}, 0);
}

/// The kernel wants the last dimension contiguous; the others may lie anyhow.
Tensor with_dense_rows(const Tensor& x) { return x.strides()[3] == 1 || x.size(3) <= 1 ? x : contiguous(x); }

struct Attention {
  static constexpr const char* name = "attention";
  AttentionCore core;
  Saved q, k, v;
  static auto fused_rows() { return AttentionCore::fused_rows(); }
  Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value) {
    const Tensor out = empty_heads(query.shape(), query.dtype(), query.device());
    core.run(out, with_dense_rows(query), with_dense_rows(key), with_dense_rows(value));
    return out;
  }
  void save(const Tensor& out, const Tensor& query, const Tensor& key, const Tensor& value) {
    core.keep(out);
    q.keep(query);
    k.keep(key);
    v.keep(value);
  }
  void backward(const Tensor& dy, Sinks sinks) {
    const Tensor query = with_dense_rows(q.get()), key = with_dense_rows(k.get()), value = with_dense_rows(v.get());
    Tensor dq = empty_heads(query.shape(), query.dtype(), query.device()),
           dk = empty_heads(key.shape(), key.dtype(), key.device()),
           dv = empty_heads(key.shape(), key.dtype(), key.device());
    kernels::attention_backward(query.device(), dq, dk, dv, with_dense_rows(dy), query, key, value, core.output(),
                                core.logsumexp(), core.kept_row(query, key));
    if (sinks[0].wanted()) sinks[0].put(std::move(dq));
    if (sinks[1].wanted()) sinks[1].put(std::move(dk));
    if (sinks[2].wanted()) sinks[2].put(std::move(dv));
  }
  std::vector<Tensor> inputs() { return {q.get(), k.get(), v.get()}; }
  Tensor composed(std::span<const Tensor> in) { return core.composed(in[0], in[1], in[2]); }
};

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
  Attention self{AttentionCore(op, options, q, std::max(q.size(2), k.size(2)), q.size(3), where), {}, {}, {}};
  if (multiplies_tf32(op, q, where)) [[unlikely]]
    return tf32_result(
        autograd::apply(std::move(self), where, tf32_operand(q, where), tf32_operand(k, where), tf32_operand(v, where)),
        where);
  return autograd::apply(std::move(self), where, q, k, v);
}

}  // namespace cinta
