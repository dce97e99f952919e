// Elementwise functions with broadcasting: shapes are aligned at the last dimension, sizes equal or 1. Operands must
// have the same type and device (cast() and to() are explicit); one of two may be a number. Errors: ShapeError,
// DtypeError, DeviceError.
#pragma once
#include "cinta/core/tensor.h"

namespace cinta {

/// An operand: a tensor, or a number, which counts as a tensor full of it. An operator has no argument for the place of
/// its call: the conversion of its last operand takes it.
struct Operand {
  Operand(const Tensor& tensor, Where where = Where::current()) : tensor(&tensor), where(where) {}
  Operand(double number, Where where = Where::current()) : number(number), where(where) {}
  const Tensor* tensor = nullptr;
  double number = 0;
  Where where;
};

Tensor add(Operand left, Operand right, Where where = Where::current());
Tensor subtract(Operand left, Operand right, Where where = Where::current());
Tensor multiply(Operand left, Operand right, Where where = Where::current());
Tensor divide(Operand left, Operand right, Where where = Where::current());
/// base to the power of exponent; x^0 is 1 for every x. NaN for a negative base and an exponent that is not whole.
Tensor pow(Operand base, Operand exponent, Where where = Where::current());
/// scale * x + shift
Tensor affine(const Tensor& x, double scale, double shift, Where where = Where::current());

inline Tensor operator+(Operand left, Operand right) { return add(left, right, right.where); }
inline Tensor operator-(Operand left, Operand right) { return subtract(left, right, right.where); }
inline Tensor operator*(Operand left, Operand right) { return multiply(left, right, right.where); }
inline Tensor operator/(Operand left, Operand right) { return divide(left, right, right.where); }
inline Tensor operator-(Operand x) { return multiply(x, -1.0, x.where); }

Tensor exp(const Tensor& x, Where where = Where::current());
Tensor log(const Tensor& x, Where where = Where::current());
Tensor sqrt(const Tensor& x, Where where = Where::current());
Tensor rsqrt(const Tensor& x, Where where = Where::current());
Tensor abs(const Tensor& x, Where where = Where::current());
Tensor erf(const Tensor& x, Where where = Where::current());
/// Limits x to [low, high]; NaN stays NaN. Throws ValueError when low > high.
Tensor clamp(const Tensor& x, double low, double high, Where where = Where::current());

/// Comparisons give bool and are not differentiated. A number is compared in the type of the other operand, or in f64
/// where that is of whole numbers: exactly up to 2^53.
Tensor equal(Operand left, Operand right, Where where = Where::current());
Tensor not_equal(Operand left, Operand right, Where where = Where::current());
Tensor less(Operand left, Operand right, Where where = Where::current());
Tensor less_equal(Operand left, Operand right, Where where = Where::current());
Tensor greater(Operand left, Operand right, Where where = Where::current());
Tensor greater_equal(Operand left, Operand right, Where where = Where::current());
/// left where condition (bool) holds, right elsewhere; all three broadcast. Beside a number the other is
/// floating-point.
Tensor where(const Tensor& condition, Operand left, Operand right, Where place = Where::current());

}  // namespace cinta
