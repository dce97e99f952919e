// How an elementwise function of one tensor becomes an op: its kernel row and its derivative written with ops.
#pragma once
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/core/tensor.h"

namespace cinta {

/// f'(x) as a tape expression of x and y = f(x): what a gradient of gradients follows. First gradients use the fused
/// row.
using Derivative = Tensor (*)(const Tensor& x, const Tensor& y, kernels::Scalars scalars);

/// y = f(x) through `row`. Throws DtypeError unless x is of a floating-point type that its device computes in.
Tensor unary(const kernels::UnaryRow& row, const Tensor& x, Derivative derivative, kernels::Scalars scalars,
             Where where);

}  // namespace cinta
