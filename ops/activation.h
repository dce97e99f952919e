// Activation functions. Each is one line here, its formula and slope one line in each backend.
#pragma once
#include "cinta/core/tensor.h"

namespace cinta {

Tensor relu(const Tensor& x, Where where = Where::current());
Tensor leaky_relu(const Tensor& x, double slope = 0.01, Where where = Where::current());
/// x/2 (1 + erf(x / sqrt 2)) (Hendrycks, Gimpel 2016).
Tensor gelu(const Tensor& x, Where where = Where::current());
/// The tanh approximation of gelu.
Tensor gelu_tanh(const Tensor& x, Where where = Where::current());
Tensor silu(const Tensor& x, Where where = Where::current());
Tensor tanh(const Tensor& x, Where where = Where::current());
Tensor sigmoid(const Tensor& x, Where where = Where::current());
/// log(1 + e^x)
Tensor softplus(const Tensor& x, Where where = Where::current());
/// x > 0 ? x : alpha (e^x - 1)
Tensor elu(const Tensor& x, double alpha = 1, Where where = Where::current());

}  // namespace cinta
