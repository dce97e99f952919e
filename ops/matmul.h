// Matrix products and the linear layer's function.
#pragma once
#include "cinta/backends/kernels/matmul.h"
#include "cinta/core/tensor.h"

namespace cinta {

using kernels::Activation;

/// [.., M, K] x [.., K, N] -> [.., M, N]; leading dimensions broadcast. A transposed operand costs no copy.
Tensor matmul(const Tensor& left, const Tensor& right, Where where = Where::current());

/// activation(x w^T + bias): x[.., K], w[N, K], bias[N] or none -> [.., N]. One fused op; its composed form is
/// matmul, add and the activation.
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias = {}, Activation activation = Activation::none,
              Where where = Where::current());

}  // namespace cinta
