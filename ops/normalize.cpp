// layer_norm and rms_norm, and what they keep.
#include "cinta/ops/normalize.h"

#include <utility>

#include "cinta/autograd/autocast.h"
#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/normalize.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/normalize_check.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/row_gradient.h"
#include "cinta/ops/rows.h"

namespace cinta {
namespace {

using autograd::Saved;
using autograd::Sinks;

/// What a norm keeps of its operand: itself, or where it is wide and what follows reads a low copy of the result, its
/// normalised rows in that type: half the bytes, and no number beyond sqrt(N).
struct Kept {
  Saved x, normal;
  std::shared_ptr<autograd::Slot> slot;  // of an operand whose values are not kept
  Tensor made;                           // the rows, between forward and save

  /// The rows to write in forward, where they will be kept.
  View begin(bool recorded, const Tensor& in, const Tensor& shadow) {
    if (!recorded || !shadow) return {};
    made = empty(in.shape(), shadow.dtype(), in.device());
    return as_rows(made);
  }
  void save(const Tensor& in) {
    slot = in.slot;
    if (made)
      normal.keep(std::exchange(made, {}));
    else
      x.keep(in);
  }
  Tensor normal_rows() { return normal ? as_rows(normal.get()) : Tensor(); }
  Tensor x_rows() { return normal ? Tensor() : as_rows(x.get()); }
  Shape shape() { return (normal ? normal : x).get().shape(); }
  /// The operand, as near as what is kept says it.
  Tensor operand(const Tensor& mean, const Tensor& rstd, Dtype type) {
    if (!normal) return x.get();
    Tensor in = cast(reshape(denormalized(normal_rows(), mean, rstd), normal.get().shape()), type);
    in.slot = slot;
    return in;
  }
};

struct LayerNorm {
  static constexpr const char* name = "layer_norm";
  float eps;
  bool recorded;
  Dtype type = Dtype::f32;  // of the operand and the result
  Kept kept = {};
  Saved gain = {}, bias = {}, mean = {}, rstd = {};
  Tensor row_mean = {}, row_rstd = {};  // between forward and save

  std::array<autograd::FusedRow, 1> fused_rows() const {
    return {{{&kernels::layer_norm, &kernels::layer_norm_backward}}};
  }
  Tensor forward(const Tensor& in, const Tensor& g, const Tensor& b) {
    const Tensor rows = as_rows(in);
    type = in.dtype();
    Tensor y = empty_like(in);
    const Tensor shadow = autograd::shadow_to_write(name, y);
    row_mean = empty({rows.size(0)}, statistics_type(in.dtype()), in.device());
    row_rstd = empty_like(row_mean);
    kernels::layer_norm(in.device(), as_rows(y), rows_view(shadow), kept.begin(recorded, in, shadow), row_mean,
                        row_rstd, rows, dense(g).view(), dense(b).view(), eps);
    return y;
  }
  void save(const Tensor&, const Tensor& in, const Tensor& g, const Tensor& b) {
    kept.save(in);
    gain.keep(g);
    bias.keep(b);
    mean.keep(std::exchange(row_mean, {}));
    rstd.keep(std::exchange(row_rstd, {}));
  }
  void backward(const Tensor& dy, Sinks sinks) {
    const Tensor normal = kept.normal_rows(), in = kept.x_rows(), g = gain ? gain.get() : Tensor();
    const Shape shape = kept.shape();
    const Dtype wide = statistics_type(type);
    const Device device = dy.device();
    RowGradient dx(sinks, 0, shape, type, device), dgain(sinks, 1, {shape[shape.rank() - 1]}, wide, device);
    RowGradient dbias(sinks, 2, {shape[shape.rank() - 1]}, wide, device);
    const Tensor low = dx.shadow_to_write();
    kernels::layer_norm_backward(device, rows_view(dx.written()), rows_view(low), dgain.view(), dbias.view(),
                                 as_rows(dy), normal.view(), in.view(), mean.get(), rstd.get(), dense(g).view(),
                                 dx.beta(), dgain.beta(), dbias.beta());
    dx.finish();
    dgain.finish();
    dbias.finish();
  }
  std::vector<Tensor> inputs() {
    return {kept.operand(mean.get(), rstd.get(), type), gain ? gain.get() : Tensor(), bias ? bias.get() : Tensor()};
  }
  Tensor composed(std::span<const Tensor> in) {
    return cast(composed_layer_norm(in[0], in[1], in[2], eps), in[0].dtype());
  }
};

struct RmsNorm {
  static constexpr const char* name = "rms_norm";
  float eps;
  bool recorded;
  Dtype type = Dtype::f32;  // of the operand and the result
  Kept kept = {};
  Saved gain = {}, rstd = {};
  Tensor row_rstd = {};  // between forward and save

  std::array<autograd::FusedRow, 1> fused_rows() const { return {{{&kernels::rms_norm, &kernels::rms_norm_backward}}}; }
  Tensor forward(const Tensor& in, const Tensor& g) {
    const Tensor rows = as_rows(in);
    type = in.dtype();
    Tensor y = empty_like(in);
    const Tensor shadow = autograd::shadow_to_write(name, y);
    row_rstd = empty({rows.size(0)}, statistics_type(in.dtype()), in.device());
    kernels::rms_norm(in.device(), as_rows(y), rows_view(shadow), kept.begin(recorded, in, shadow), row_rstd, rows,
                      dense(g).view(), eps);
    return y;
  }
  void save(const Tensor&, const Tensor& in, const Tensor& g) {
    kept.save(in);
    gain.keep(g);
    rstd.keep(std::exchange(row_rstd, {}));
  }
  void backward(const Tensor& dy, Sinks sinks) {
    const Tensor normal = kept.normal_rows(), in = kept.x_rows(), g = gain ? gain.get() : Tensor();
    const Shape shape = kept.shape();
    const Device device = dy.device();
    RowGradient dx(sinks, 0, shape, type, device);
    RowGradient dgain(sinks, 1, {shape[shape.rank() - 1]}, statistics_type(type), device);
    const Tensor low = dx.shadow_to_write();
    kernels::rms_norm_backward(device, rows_view(dx.written()), rows_view(low), dgain.view(), as_rows(dy),
                               normal.view(), in.view(), rstd.get(), dense(g).view(), dx.beta(), dgain.beta());
    dx.finish();
    dgain.finish();
  }
  std::vector<Tensor> inputs() { return {kept.operand({}, rstd.get(), type), gain ? gain.get() : Tensor()}; }
  Tensor composed(std::span<const Tensor> in) {
    const Dtype wide = statistics_type(in[0].dtype());
    const Tensor x = cast(in[0], wide), y = x * rsqrt(cinta::mean(x * x, {-1}, true) + eps);
    return cast(in[1] ? y * cast(in[1], wide) : y, in[0].dtype());
  }
};

}  // namespace

Tensor denormalized(const Tensor& normal_rows, const Tensor& mean, const Tensor& rstd) {
  const Tensor rows = cast(normal_rows, rstd.dtype()) / reshape(rstd, {rstd.numel(), 1});
  return mean ? rows + reshape(mean, {mean.numel(), 1}) : rows;
}

Tensor composed_layer_norm(const Tensor& narrow, const Tensor& gain, const Tensor& bias, double eps) {
  const Dtype wide = statistics_type(narrow.dtype());
  const Tensor x = cast(narrow, wide), centred = x - mean(x, {-1}, true);
  Tensor y = centred * rsqrt(mean(centred * centred, {-1}, true) + eps);
  if (gain) y = y * cast(gain, wide);
  return bias ? y + cast(bias, wide) : y;
}

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps, Where where) {
  check_normalized(kernels::layer_norm, "layer_norm", x, eps, where);
  check_parameters("layer_norm", x, {{"gain", &gain}, {"bias", &bias}}, where);
  return autograd::apply(LayerNorm{.eps = static_cast<float>(eps), .recorded = autograd::records({&x, &gain, &bias})},
                         where, x, gain, bias);
}

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps, Where where) {
  check_normalized(kernels::rms_norm, "rms_norm", x, eps, where);
  check_parameters("rms_norm", x, {{"gain", &gain}}, where);
  return autograd::apply(RmsNorm{.eps = static_cast<float>(eps), .recorded = autograd::records({&x, &gain})}, where, x,
                         gain);
}

}  // namespace cinta
