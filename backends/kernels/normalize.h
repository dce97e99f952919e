// Normalisation over the last dimension. Contiguous x[R,N]; statistics and parameter gradients in f32 (f64 beside f64
// x).
#pragma once
#include "cinta/backends/kernel.h"
#include "cinta/backends/kernels/random.h"

namespace cinta::kernels {

/// y = (x - mean) * rstd * gain + bias, with mean[R], rstd[R] = 1/sqrt(var + eps) (Ba, Kiros, Hinton 2016). gain and
/// bias may be absent. Variance in two passes, never E[x^2] - E[x]^2. Here and below y_too, which may be absent, is y,
/// f32 then, cast to a narrower type; normal, which may be absent, is (x - mean) * rstd in any type, for backward.
inline constinit Kernel<void(View y, View y_too, View normal, View mean, View rstd, View x, View gain, View bias,
                             float eps)>
    layer_norm{"layer_norm", fused_row};
/// dx, dgain, dbias (each may be absent; old value * beta is added). dx_too, which may be absent, is dx as it ends, f32
/// then, cast to a narrower type. Of normal, and x with mean, one is given.
inline constinit Kernel<void(View dx, View dx_too, View dgain, View dbias, View dy, View normal, View x, View mean,
                             View rstd, View gain, float beta, float beta_gain, float beta_bias)>
    layer_norm_backward{"layer_norm_backward", fused_row};

/// y = x * rstd * gain, rstd[R] = 1/sqrt(mean(x^2) + eps) (Zhang, Sennrich 2019); normal is x * rstd.
inline constinit Kernel<void(View y, View y_too, View normal, View rstd, View x, View gain, float eps)> rms_norm{
    "rms_norm", fused_row};
inline constinit Kernel<void(View dx, View dx_too, View dgain, View dy, View normal, View x, View rstd, View gain,
                             float beta, float beta_gain)>
    rms_norm_backward{"rms_norm_backward", fused_row};

/// y = layer_norm(residual + dropout(x + x_bias)). The operands may be of several types. x_bias may be absent; normal
/// is not.
inline constinit Kernel<void(View y, View y_too, View normal, View mean, View rstd, View x, View x_bias, View residual,
                             View gain, View bias, float eps, Dropout)>
    residual_norm{"residual_norm", fused_row};
/// From dy: dresidual = gradient of the sum that is normalised; dx = its dropout; dx_bias, dgain, dbias as column sums
/// (+ beta * old). dx may be absent when no dropout makes it equal dresidual, which may be dy.
inline constinit Kernel<void(View dx, View dresidual, View dx_bias, View dgain, View dbias, View dy, View normal,
                             View rstd, View gain, Dropout, float beta_x_bias, float beta_gain, float beta_bias)>
    residual_norm_backward{"residual_norm_backward", fused_row};

}  // namespace cinta::kernels
