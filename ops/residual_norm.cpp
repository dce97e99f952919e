// The end of a post-norm half layer as one op: it reads x and the residual once and keeps only their sum, normalised.
// Its result has the type of the residual, and what is kept that of x: under autocast the residual passes through all
// layers in f32.
#include <utility>

#include "cinta/autograd/autocast.h"
#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/normalize.h"
#include "cinta/ops/dropout.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/normalize.h"
#include "cinta/ops/normalize_check.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/row_gradient.h"
#include "cinta/ops/rows.h"

namespace cinta {
namespace {

using autograd::Saved;
using autograd::Sinks;

/// residual + dropout(x + x_bias) where the sum is known already: for the tape only. Linear, so that its gradient needs
/// no operand, and the operands' values are never read.
struct KnownSum {
  static constexpr const char* name = "residual_norm";
  static constexpr bool backward_uses_ops = true;
  Tensor total;
  Draw draw;
  Tensor forward(const Tensor&, const Tensor&, const Tensor&) { return detach(total); }
  void save(const Tensor&, const Tensor&, const Tensor&, const Tensor&) {}
  void backward(const Tensor& d, Sinks sinks) {
    const Tensor dx = dropout(d, draw.again(name));
    if (sinks[0].wanted()) sinks[0].put(dx);
    if (sinks[1].wanted()) sinks[1].put(sum_to(dx, {d.size(-1)}));
    if (sinks[2].wanted()) sinks[2].put(d);
  }
};

struct ResidualNorm {
  static constexpr const char* name = "residual_norm";
  float eps;
  Draw draw;
  Dtype type = Dtype::f32;  // of the residual and the result
  Saved normal, mean, rstd, x_bias, gain, bias;
  std::shared_ptr<autograd::Slot> x_slot, residual_slot;  // seats of operands whose values are not kept
  Tensor row_normal, row_mean, row_rstd;                  // between forward and save

  std::array<autograd::FusedRow, 1> fused_rows() const {
    return {{{&kernels::residual_norm, &kernels::residual_norm_backward}}};
  }
  Tensor forward(const Tensor& x, const Tensor& added, const Tensor& residual, const Tensor& g, const Tensor& b) {
    const Tensor rows = as_rows(x);
    const Device device = x.device();
    type = residual.dtype();
    Tensor y = empty(x.shape(), type, device);
    const Tensor shadow = autograd::shadow_to_write(name, y);
    row_normal = empty_like(x);
    row_mean = empty({rows.size(0)}, statistics_type(x.dtype()), device);
    row_rstd = empty_like(row_mean);
    kernels::residual_norm(device, as_rows(y), rows_view(shadow), as_rows(row_normal), row_mean, row_rstd, rows,
                           dense(added).view(), as_rows(residual), dense(g).view(), dense(b).view(), eps,
                           draw.again(name).row(rows_per_sample(x)));
    return y;
  }
  void save(const Tensor&, const Tensor& x, const Tensor& added, const Tensor& residual, const Tensor& g,
            const Tensor& b) {
    normal.keep(std::exchange(row_normal, {}));
    mean.keep(std::exchange(row_mean, {}));
    rstd.keep(std::exchange(row_rstd, {}));
    x_bias.keep(added);
    gain.keep(g);
    bias.keep(b);
    x_slot = x.slot;
    residual_slot = residual.slot;
  }
  void backward(const Tensor& dy, Sinks sinks) {
    const Tensor &rows = normal.get(), g = gain ? gain.get() : Tensor();
    const Dtype dtype = rows.dtype(), wide = statistics_type(dtype);
    const Device device = rows.device();
    const Shape columns{rows.size(-1)};
    // Of one type and without dropout, x and the residual have one gradient.
    Tensor dx, dresidual = autograd::in_place_of(dy);
    if ((draw || type != dtype) && (sinks[0].wanted() || sinks[1].wanted())) dx = empty_like(rows);
    RowGradient dadded(sinks, 1, columns, wide, device), dgain(sinks, 3, columns, wide, device),
        dbias(sinks, 4, columns, wide, device);
    kernels::residual_norm_backward(device, rows_view(dx), as_rows(dresidual), dadded.view(), dgain.view(),
                                    dbias.view(), as_rows(dy), as_rows(rows), rstd.get(), dense(g).view(),
                                    draw.again(name).row(rows_per_sample(rows)), dadded.beta(), dgain.beta(),
                                    dbias.beta());
    dadded.finish();
    dgain.finish();
    dbias.finish();
    if (sinks[0].wanted()) sinks[0].put(dx ? std::move(dx) : dresidual);
    if (sinks[2].wanted()) sinks[2].put(std::move(dresidual));
  }
  std::vector<Tensor> inputs() {
    Tensor x = detach(normal.get()), residual = cast(x, type);
    x.slot = x_slot;
    residual.slot = residual_slot;
    auto of = [](Saved& saved) { return saved ? saved.get() : Tensor(); };
    return {x, of(x_bias), residual, of(gain), of(bias)};
  }
  Tensor composed(std::span<const Tensor> in) {
    const Dtype dtype = in[2].dtype();
    const Tensor sum = normal ? autograd::apply(KnownSum{sum_again(), draw}, Where(), in[0], in[1], in[2])
                              : sum_of(in[0], in[1], in[2]);
    return cast(composed_layer_norm(sum, in[3], in[4], eps), dtype);
  }
  /// The sum, as near as what is kept says it, in the type of the statistics: rounded it would be another row.
  Tensor sum_again() {
    return reshape(denormalized(as_rows(normal.get()), mean.get(), rstd.get()), normal.get().shape());
  }
  Tensor sum_of(const Tensor& x, const Tensor& added, const Tensor& residual) const {
    const Dtype wide = statistics_type(x.dtype());
    Tensor sum = cast(x, wide);
    if (added) sum = sum + cast(added, wide);
    return cast(residual, wide) + dropout(sum, draw.again(name));
  }
};

}  // namespace

Tensor residual_norm(const Tensor& x, const Tensor& x_bias, const Tensor& residual, const Tensor& gain,
                     const Tensor& bias, const ResidualNormOptions& options, Where where) {
  constexpr const char* op = "residual_norm";
  check_normalized(kernels::residual_norm, op, x, options.eps, where);
  check_like(op, "residual", residual, x, where);
  require<ShapeError>(residual.shape() == x.shape(), op, where, "x and residual have one shape: ", x, " and ",
                      residual);
  check_parameters(op, x, {{"x_bias", &x_bias}, {"gain", &gain}, {"bias", &bias}}, where);
  check_dropout(op, options.dropout, x, where);
  ResidualNorm norm{};
  norm.eps = static_cast<float>(options.eps);
  norm.draw = Draw(options.dropout);
  return autograd::apply(std::move(norm), where, x, x_bias, residual, gain, bias);
}

}  // namespace cinta
