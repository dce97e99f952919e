// Normalisation over the last dimension.
#pragma once
#include "cinta/ops/random.h"

namespace cinta {

/// (x - mean) / sqrt(var + eps) * gain + bias for x[..,N], gain[N], bias[N] (both may be absent) (Ba, Kiros, Hinton
/// 2016).
Tensor layer_norm(const Tensor& x, const Tensor& gain = {}, const Tensor& bias = {}, double eps = 1e-5,
                  Where where = Where::current());
/// x / sqrt(mean(x^2) + eps) * gain (Zhang, Sennrich 2019).
Tensor rms_norm(const Tensor& x, const Tensor& gain = {}, double eps = 1e-5, Where where = Where::current());

struct ResidualNormOptions {
  double eps = 1e-5;
  DropoutSite dropout = {};
};
/// layer_norm(residual + dropout(x + x_bias), gain, bias), fused: the end of every half of a post-norm Transformer
/// layer, with the bias of the linear layer before it. x_bias, gain and bias may be absent. Keeps one tensor of x's
/// size.
Tensor residual_norm(const Tensor& x, const Tensor& x_bias, const Tensor& residual, const Tensor& gain,
                     const Tensor& bias, const ResidualNormOptions& options = {}, Where where = Where::current());

}  // namespace cinta
