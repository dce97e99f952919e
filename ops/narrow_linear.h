// The linear layer's product under a recipe of narrow products.
#pragma once
#include "cinta/autograd/narrow_products.h"

namespace cinta {

/// x w^T + bias in type `dtype`, both operands and later the gradient narrowed by `products`: x[.., K], w[N, K],
/// bias[N] or none, of types that autocast changes. Throws what NarrowProducts::check() does; its gradient has none.
Tensor narrow_linear(std::shared_ptr<autograd::NarrowProducts> products, const Tensor& x, const Tensor& w,
                     const Tensor& bias, Dtype dtype, Where where);

}  // namespace cinta
