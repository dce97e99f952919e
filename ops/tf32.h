// TF32: how products of f32 are fed where autocast asks for it, as tensor cores multiply f32: each operand rounded to
// ten bits of mantissa, sums in f32. Rounding is straight through: it is no part of the gradient.
// NVIDIA 2020, "A100 Tensor Core GPU Architecture".
#pragma once
#include "cinta/core/tensor.h"

namespace cinta {

/// Whether `op` is to multiply TF32 numbers. Throws DeviceError where the device of `x` cannot round to them.
bool multiplies_tf32(const char* op, const Tensor& x, Where where);
/// `x` as a product reads it: rounded to nearest where it is f32, itself where it has another type.
Tensor tf32_operand(const Tensor& x, Where where);
/// What products of such operands gave, as it is: its gradient, an operand of their gradients' products, is rounded.
Tensor tf32_result(const Tensor& y, Where where);

}  // namespace cinta
