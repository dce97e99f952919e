// layer_norm and rms_norm.
#include "cinta/ops/normalize.h"

#include <utility>

#include "cinta/autograd/autocast.h"
#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/normalize.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/normalize_check.h"
#include "cinta/ops/parameter_gradient.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/rows.h"

namespace cinta {
namespace {

using autograd::Saved;
using autograd::Sinks;

struct LayerNorm {
  static constexpr const char* name = "layer_norm";
  float eps;
  Saved x, gain, bias, mean, rstd;
  Tensor row_mean, row_rstd;  // between forward and save

  Tensor forward(const Tensor& in, const Tensor& g, const Tensor& b) {
    const Tensor rows = as_rows(in);
    Tensor y = empty_like(in);
    const Tensor shadow = autograd::shadow_to_write(name, y);
    row_mean = empty({rows.size(0)}, statistics_type(in.dtype()), in.device());
    row_rstd = empty_like(row_mean);
    kernels::layer_norm(in.device(), as_rows(y), shadow ? as_rows(shadow).view() : View{}, row_mean, row_rstd, rows,
                        dense(g).view(), dense(b).view(), eps);
    return y;
  }
  void save(const Tensor&, const Tensor& in, const Tensor& g, const Tensor& b) {
    x.keep(in);
    gain.keep(g);
    bias.keep(b);
    mean.keep(std::exchange(row_mean, {}));
    rstd.keep(std::exchange(row_rstd, {}));
  }
  void backward(const Tensor& dy, Sinks sinks) {
    const Tensor &in = x.get(), g = gain ? gain.get() : Tensor();
    const Dtype wide = statistics_type(in.dtype());
    const Device device = in.device();
    Tensor dx;
    if (sinks[0].wanted()) dx = empty_like(in);
    ParameterGradient dgain(sinks[1], {in.size(-1)}, wide, device);
    ParameterGradient dbias(sinks[2], {in.size(-1)}, wide, device);
    kernels::layer_norm_backward(device, dx ? as_rows(dx).view() : View{}, dgain.view(), dbias.view(), as_rows(dy),
                                 as_rows(in), mean.get(), rstd.get(), dense(g).view(), dgain.beta(), dbias.beta());
    dgain.finish();
    dbias.finish();
    if (dx) sinks[0].put(std::move(dx));
  }
  std::vector<Tensor> inputs() { return {x.get(), gain ? gain.get() : Tensor(), bias ? bias.get() : Tensor()}; }
  Tensor composed(std::span<const Tensor> in) {
    return cast(composed_layer_norm(in[0], in[1], in[2], eps), in[0].dtype());
  }
};

struct RmsNorm {
  static constexpr const char* name = "rms_norm";
  float eps;
  Saved x, gain, rstd;
  Tensor row_rstd;  // between forward and save

  Tensor forward(const Tensor& in, const Tensor& g) {
    const Tensor rows = as_rows(in);
    Tensor y = empty_like(in);
    const Tensor shadow = autograd::shadow_to_write(name, y);
    row_rstd = empty({rows.size(0)}, statistics_type(in.dtype()), in.device());
    kernels::rms_norm(in.device(), as_rows(y), shadow ? as_rows(shadow).view() : View{}, row_rstd, rows,
                      dense(g).view(), eps);
    return y;
  }
  void save(const Tensor&, const Tensor& in, const Tensor& g) {
    x.keep(in);
    gain.keep(g);
    rstd.keep(std::exchange(row_rstd, {}));
  }
  void backward(const Tensor& dy, Sinks sinks) {
    const Tensor &in = x.get(), g = gain ? gain.get() : Tensor();
    Tensor dx;
    if (sinks[0].wanted()) dx = empty_like(in);
    ParameterGradient dgain(sinks[1], {in.size(-1)}, statistics_type(in.dtype()), in.device());
    kernels::rms_norm_backward(in.device(), dx ? as_rows(dx).view() : View{}, dgain.view(), as_rows(dy), as_rows(in),
                               rstd.get(), dense(g).view(), dgain.beta());
    dgain.finish();
    if (dx) sinks[0].put(std::move(dx));
  }
  std::vector<Tensor> inputs() { return {x.get(), gain ? gain.get() : Tensor()}; }
  Tensor composed(std::span<const Tensor> in) {
    const Dtype wide = statistics_type(in[0].dtype());
    const Tensor x = cast(in[0], wide), y = x * rsqrt(cinta::mean(x * x, {-1}, true) + eps);
    return cast(in[1] ? y * cast(in[1], wide) : y, in[0].dtype());
  }
};

}  // namespace

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
  return autograd::apply(LayerNorm{static_cast<float>(eps), {}, {}, {}, {}, {}, {}, {}}, where, x, gain, bias);
}

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps, Where where) {
  check_normalized(kernels::rms_norm, "rms_norm", x, eps, where);
  check_parameters("rms_norm", x, {{"gain", &gain}}, where);
  return autograd::apply(RmsNorm{static_cast<float>(eps), {}, {}, {}, {}}, where, x, gain);
}

}  // namespace cinta
