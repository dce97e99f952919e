// Elementwise functions with broadcasting: shapes are aligned at the last dimension, sizes equal or 1. Operands must
// have the same type and device (cast() and to() are explicit). Errors: ShapeError, DtypeError, DeviceError.
#pragma once
#include "cinta/core/tensor.h"

namespace cinta {

Tensor add(const Tensor& left, const Tensor& right, Where where = Where::current());
Tensor subtract(const Tensor& left, const Tensor& right, Where where = Where::current());
Tensor multiply(const Tensor& left, const Tensor& right, Where where = Where::current());
Tensor divide(const Tensor& left, const Tensor& right, Where where = Where::current());
/// scale * x + shift
Tensor affine(const Tensor& x, double scale, double shift, Where where = Where::current());

/// The last operand of an operator, which has no argument for the place of its call: the conversion to this takes it.
struct Operand {
  Operand(const Tensor& tensor, Where where = Where::current()) : tensor(tensor), where(where) {}
  const Tensor& tensor;
  Where where;
};
struct Number {
  Number(double value, Where where = Where::current()) : value(value), where(where) {}
  double value;
  Where where;
};
inline Tensor operator+(const Tensor& left, Operand right) { return add(left, right.tensor, right.where); }
inline Tensor operator-(const Tensor& left, Operand right) { return subtract(left, right.tensor, right.where); }
inline Tensor operator*(const Tensor& left, Operand right) { return multiply(left, right.tensor, right.where); }
inline Tensor operator/(const Tensor& left, Operand right) { return divide(left, right.tensor, right.where); }
inline Tensor operator-(Operand x) { return affine(x.tensor, -1, 0, x.where); }
inline Tensor operator*(const Tensor& x, Number scale) { return affine(x, scale.value, 0, scale.where); }
inline Tensor operator*(double scale, Operand x) { return affine(x.tensor, scale, 0, x.where); }
inline Tensor operator+(const Tensor& x, Number shift) { return affine(x, 1, shift.value, shift.where); }
inline Tensor operator-(const Tensor& x, Number shift) { return affine(x, 1, -shift.value, shift.where); }

Tensor exp(const Tensor& x, Where where = Where::current());
Tensor log(const Tensor& x, Where where = Where::current());
Tensor sqrt(const Tensor& x, Where where = Where::current());
Tensor rsqrt(const Tensor& x, Where where = Where::current());
Tensor pow(const Tensor& x, double exponent, Where where = Where::current());
Tensor abs(const Tensor& x, Where where = Where::current());
Tensor erf(const Tensor& x, Where where = Where::current());
/// Limits x to [low, high]; NaN stays NaN. Throws ValueError when low > high.
Tensor clamp(const Tensor& x, double low, double high, Where where = Where::current());

/// Comparisons give bool and are not differentiated.
Tensor equal(const Tensor& left, const Tensor& right, Where where = Where::current());
Tensor not_equal(const Tensor& left, const Tensor& right, Where where = Where::current());
Tensor less(const Tensor& left, const Tensor& right, Where where = Where::current());
Tensor less_equal(const Tensor& left, const Tensor& right, Where where = Where::current());
Tensor greater(const Tensor& left, const Tensor& right, Where where = Where::current());
Tensor greater_equal(const Tensor& left, const Tensor& right, Where where = Where::current());
/// left where condition (bool) holds, right elsewhere; all three broadcast.
Tensor where(const Tensor& condition, const Tensor& left, const Tensor& right, Where place = Where::current());

}  // namespace cinta
