// Elementwise ops: broadcasting is done here, with strides of 0; the kernels see views of one shape.
#include "cinta/ops/elementwise.h"

#include <cmath>

#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/ops/check.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "cinta/ops/unary.h"

namespace cinta {
namespace {

using autograd::apply;
using autograd::Saved;
using autograd::Sinks;
using autograd::tracked;
using kernels::Scalars;

void check_pair(const KernelRow& row, const char* op, const Tensor& left, const Tensor& right, Where where) {
  require<DtypeError>(left && right && autograd::reconciled(left.dtype(), right.dtype()), op, where,
                      "operands have one type: ", left, " with ", right);
  require<DeviceError>(left.device() == right.device(), op, where, "operands lie on one device: ", left, " with ",
                       right);
  check_row(row, op, left, where);
}

View broadcast(const Tensor& x, const Shape& shape) {
  View view = x;
  view.strides = broadcast_strides(view.shape, view.strides, shape);
  view.shape = shape;
  return view;
}

Tensor run_binary(const kernels::Binary& row, const Tensor& left, const Tensor& right, Dtype out_type, Where where) {
  const Shape shape = broadcast_shape(left.shape(), right.shape(), row.name(), where);
  Tensor out = empty(shape, out_type, left.device());
  row(left.device(), out, broadcast(left, shape), broadcast(right, shape));
  return out;
}

/// What the four arithmetic ops share: forward through a row, gradients summed back to the operands' shapes.
template <class Self>
struct Arithmetic {
  static constexpr bool backward_uses_ops = true;
  Shape left_shape, right_shape;
  Where where;
  Tensor forward(const Tensor& left, const Tensor& right) {
    left_shape = left.shape();
    right_shape = right.shape();
    // Of two types only where autocast reconciles them, and lets an op read each as it is.
    return run_binary(Self::row(), left, right, left.dtype() == right.dtype() ? left.dtype() : Dtype::f32, where);
  }
  void put_left(Sinks sinks, const Tensor& gradient) { sinks[0].put(sum_to(gradient, left_shape)); }
  void put_right(Sinks sinks, const Tensor& gradient) { sinks[1].put(sum_to(gradient, right_shape)); }
};

struct Add : Arithmetic<Add> {
  static constexpr const char* name = "add";
  static constexpr bool passes_gradient = true;
  static const kernels::Binary& row() { return kernels::add; }
  void save(const Tensor&, const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) {
    if (sinks[0].wanted()) put_left(sinks, dy);
    if (sinks[1].wanted()) put_right(sinks, dy);
  }
};

struct Subtract : Arithmetic<Subtract> {
  static constexpr const char* name = "subtract";
  static const kernels::Binary& row() { return kernels::subtract; }
  void save(const Tensor&, const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) {
    if (sinks[0].wanted()) put_left(sinks, dy);
    if (sinks[1].wanted()) put_right(sinks, -dy);
  }
};

struct Multiply : Arithmetic<Multiply> {
  static constexpr const char* name = "multiply";
  static const kernels::Binary& row() { return kernels::multiply; }
  Saved left, right;
  void save(const Tensor&, const Tensor& l, const Tensor& r) {
    if (tracked(r)) left.keep(l);
    if (tracked(l)) right.keep(r);
  }
  void backward(const Tensor& dy, Sinks sinks) {
    if (sinks[0].wanted()) put_left(sinks, dy * right.get());
    if (sinks[1].wanted()) put_right(sinks, dy * left.get());
  }
};

struct Divide : Arithmetic<Divide> {
  static constexpr const char* name = "divide";
  static const kernels::Binary& row() { return kernels::divide; }
  Saved left, right;
  void save(const Tensor&, const Tensor& l, const Tensor& r) {
    if (tracked(r)) left.keep(l);
    right.keep(r);
  }
  void backward(const Tensor& dy, Sinks sinks) {
    const Tensor share = dy / right.get();
    if (sinks[0].wanted()) put_left(sinks, share);
    if (sinks[1].wanted()) put_right(sinks, -(share * (left.get() / right.get())));
  }
};

struct Power : Arithmetic<Power> {
  static constexpr const char* name = "pow";
  static const kernels::Binary& row() { return kernels::power; }
  Saved base, exponent, y;
  void save(const Tensor& out, const Tensor& b, const Tensor& e) {
    base.keep(b);
    exponent.keep(e);
    if (tracked(e)) y.keep(out);
  }
  // Both derivatives are 0 at some places where their formula has a factor of 0 and one that is no number: there the
  // base is taken for 1, so that neither is seen, nor by a gradient of the gradient.
  void backward(const Tensor& dy, Sinks sinks) {
    const Tensor b = base.get(), e = exponent.get();
    if (sinks[0].wanted()) {  // 0^-1 and NaN^-1 beside an exponent of 0
      const Tensor whole = cinta::where(equal(e, 0), cinta::where(greater(abs(b), 0), b, 1), b);
      put_left(sinks, dy * (e * pow(whole, e - 1)));
    }
    if (sinks[1].wanted()) {  // log(0) beside a power of 0 that is 0, and 0^0, which is 1 on both sides of it
      const Tensor whole = cinta::where(greater_equal(e, 0), cinta::where(equal(b, 0), 1, b), b);
      put_right(sinks, dy * (y.get() * log(whole)));
    }
  }
};

struct WhereOp {
  static constexpr const char* name = "where";
  static constexpr bool backward_uses_ops = true;
  Where place;
  Shape left_shape, right_shape;
  Saved condition;
  Tensor forward(const Tensor& c, const Tensor& left, const Tensor& right) {
    left_shape = left.shape();
    right_shape = right.shape();
    const Shape shape = broadcast_shape(broadcast_shape(left_shape, right_shape, name, place), c.shape(), name, place);
    Tensor out = empty(shape, left.dtype(), left.device());
    kernels::where(left.device(), out, broadcast(c, shape), broadcast(left, shape), broadcast(right, shape));
    return out;
  }
  void save(const Tensor&, const Tensor& c, const Tensor&, const Tensor&) { condition.keep(c); }
  void backward(const Tensor& dy, Sinks sinks) {
    if (sinks[1].wanted()) sinks[1].put(sum_to(cinta::where(condition.get(), dy, 0), left_shape));
    if (sinks[2].wanted()) sinks[2].put(sum_to(cinta::where(condition.get(), 0, dy), right_shape));
  }
};

template <class Op>
Tensor arithmetic(const Tensor& left, const Tensor& right, Where where) {
  check_pair(Op::row(), Op::name, left, right, where);
  require<DtypeError>(is_floating(left.dtype()), Op::name, where, "floating-point operands: ", left, " with ", right);
  Op op;
  op.where = where;
  return apply(std::move(op), where, left, right);
}

/// A tensor of one element that broadcasts against x.
Tensor scalar_like(const Tensor& x, double value) { return full({}, value, x.dtype(), x.device()); }

/// The operand beside a number.
const Tensor& tensor_of(const char* op, const Operand& operand, Where where) {
  require(operand.tensor != nullptr, op, where, "at least one operand is a tensor, given two numbers");
  return *operand.tensor;
}

/// The operand beside a number, which `row` will read.
const Tensor& beside_number(const kernels::UnaryRow& row, const char* op, const Operand& operand, Where where) {
  const Tensor& x = tensor_of(op, operand, where);
  check_floating(row.forward, op, "x", x, where);
  return x;
}

Tensor compare(const kernels::Binary& row, const Operand& left, const Operand& right, Where where) {
  const auto run = [&](const Tensor& l, const Tensor& r) {
    autograd::note_read(row.name(), l);
    autograd::note_read(row.name(), r);
    return run_binary(row, l, r, Dtype::boolean, where);
  };
  if (left.tensor && right.tensor) {
    check_pair(row, row.name(), *left.tensor, *right.tensor, where);
    return run(*left.tensor, *right.tensor);
  }
  const Tensor& x = tensor_of(row.name(), left.tensor ? left : right, where);
  require(static_cast<bool>(x), row.name(), where, "a tensor beside a number, given ", x);
  check_row(row, row.name(), x, where);
  // No type of whole numbers holds every number, and rows compare those of all types in f64.
  const Dtype dtype = is_floating(x.dtype()) ? x.dtype() : Dtype::f64;
  require<DtypeError>(row.floats(x.device()).has(dtype), row.name(), where, "on ", x.device(),
                      " the kernel computes in ", row.floats(x.device()), ", not in f64, in which ", x,
                      " is compared with a number");
  const auto number = [&](double value) { return full({}, value, dtype, x.device()); };
  return left.tensor ? run(x, number(right.number)) : run(number(left.number), x);
}

}  // namespace

Tensor add(Operand left, Operand right, Where where) {
  if (!right.tensor) return affine(beside_number(kernels::affine, "add", left, where), 1, right.number, where);
  if (!left.tensor) return affine(beside_number(kernels::affine, "add", right, where), 1, left.number, where);
  return arithmetic<Add>(*left.tensor, *right.tensor, where);
}
Tensor subtract(Operand left, Operand right, Where where) {
  if (!right.tensor) return affine(beside_number(kernels::affine, "subtract", left, where), 1, -right.number, where);
  if (!left.tensor) return affine(beside_number(kernels::affine, "subtract", right, where), -1, left.number, where);
  return arithmetic<Subtract>(*left.tensor, *right.tensor, where);
}
// A shift of -0 changes nothing, where +0 would make +0 of -0.
Tensor multiply(Operand left, Operand right, Where where) {
  if (!right.tensor) return affine(beside_number(kernels::affine, "multiply", left, where), right.number, -0.0, where);
  if (!left.tensor) return affine(beside_number(kernels::affine, "multiply", right, where), left.number, -0.0, where);
  return arithmetic<Multiply>(*left.tensor, *right.tensor, where);
}
Tensor divide(Operand left, Operand right, Where where) {
  if (!right.tensor) {
    auto derivative = [](const Tensor& x, const Tensor&, Scalars s) { return scalar_like(x, 1 / s.a); };
    return unary(kernels::divide_by, beside_number(kernels::divide_by, "divide", left, where), derivative,
                 {right.number, 0}, where);
  }
  if (!left.tensor) {
    auto derivative = [](const Tensor& x, const Tensor&, Scalars s) { return -s.a / x / x; };
    return unary(kernels::divide_into, beside_number(kernels::divide_into, "divide", right, where), derivative,
                 {left.number, 0}, where);
  }
  return arithmetic<Divide>(*left.tensor, *right.tensor, where);
}
Tensor pow(Operand base, Operand exponent, Where where) {
  if (!exponent.tensor) {
    auto derivative = [](const Tensor& x, const Tensor&, Scalars s) {
      return s.a == 0 ? scalar_like(x, 0) : pow(x, s.a - 1) * s.a;
    };
    return unary(kernels::pow, beside_number(kernels::pow, "pow", base, where), derivative, {exponent.number, 0},
                 where);
  }
  if (!base.tensor) {
    auto derivative = [](const Tensor&, const Tensor& y, Scalars s) {
      if (s.a != 0) return y * std::log(s.a);
      return cinta::where(greater(y, 1), -INFINITY, scalar_like(y, 0));
    };
    return unary(kernels::power_of, beside_number(kernels::power_of, "pow", exponent, where), derivative,
                 {base.number, 0}, where);
  }
  return arithmetic<Power>(*base.tensor, *exponent.tensor, where);
}

Tensor equal(Operand left, Operand right, Where where) { return compare(kernels::equal, left, right, where); }
Tensor not_equal(Operand left, Operand right, Where where) { return compare(kernels::not_equal, left, right, where); }
Tensor less(Operand left, Operand right, Where where) { return compare(kernels::less, left, right, where); }
Tensor less_equal(Operand left, Operand right, Where where) { return compare(kernels::less_equal, left, right, where); }
Tensor greater(Operand left, Operand right, Where where) { return compare(kernels::greater, left, right, where); }
Tensor greater_equal(Operand left, Operand right, Where where) {
  return compare(kernels::greater_equal, left, right, where);
}

Tensor where(const Tensor& condition, Operand left, Operand right, Where place) {
  const Tensor& x = tensor_of("where", left.tensor ? left : right, place);
  const bool pair = left.tensor && right.tensor;
  if (pair)
    check_pair(kernels::where, "where", x, *right.tensor, place);
  else
    check_floating(kernels::where, "where", "the tensor beside a number", x, place);
  require<DtypeError>(condition && condition.dtype() == Dtype::boolean, "where", place,
                      "the condition is bool: ", condition);
  require<DeviceError>(condition.device() == x.device(), "where", place, "one device: ", condition, " with ", x);
  WhereOp op{place, {}, {}, {}};
  if (pair) return apply(std::move(op), place, condition, x, *right.tensor);
  broadcast_shape(x.shape(), condition.shape(), "where", place);  // or the number would get memory in vain
  const Tensor number = scalar_like(x, left.tensor ? right.number : left.number);
  return left.tensor ? apply(std::move(op), place, condition, x, number)
                     : apply(std::move(op), place, condition, number, x);
}

// Each function of one tensor: its row and f'(x) written with ops.

Tensor affine(const Tensor& x, double scale, double shift, Where where) {
  return unary(
      kernels::affine, x, [](const Tensor& x, const Tensor&, Scalars s) { return scalar_like(x, s.a); }, {scale, shift},
      where);
}
Tensor exp(const Tensor& x, Where where) {
  return unary(
      kernels::exp, x, [](const Tensor&, const Tensor& y, Scalars) { return y; }, {}, where);
}
Tensor log(const Tensor& x, Where where) {
  return unary(
      kernels::log, x, [](const Tensor& x, const Tensor&, Scalars) { return 1.0 / x; }, {}, where);
}
Tensor sqrt(const Tensor& x, Where where) {
  return unary(
      kernels::sqrt, x, [](const Tensor&, const Tensor& y, Scalars) { return 0.5 / y; }, {}, where);
}
Tensor rsqrt(const Tensor& x, Where where) {
  return unary(
      kernels::rsqrt, x, [](const Tensor&, const Tensor& y, Scalars) { return pow(y, 3) * -0.5; }, {}, where);
}
Tensor abs(const Tensor& x, Where where) {
  auto sign = [](const Tensor& x, const Tensor&, Scalars) {
    return cinta::where(less(x, 0), -1, cinta::where(greater(x, 0), scalar_like(x, 1), 0));
  };
  return unary(kernels::abs, x, sign, {}, where);
}
Tensor erf(const Tensor& x, Where where) {
  constexpr double two_over_sqrt_pi = 1.1283791670955126;
  auto derivative = [](const Tensor& x, const Tensor&, Scalars) { return exp(-(x * x)) * two_over_sqrt_pi; };
  return unary(kernels::erf, x, derivative, {}, where);
}
Tensor clamp(const Tensor& x, double low, double high, Where where) {
  require(low <= high, "clamp", where, "the lower bound is not above the upper: ", low, " > ", high);
  auto derivative = [](const Tensor& x, const Tensor&, Scalars s) {
    return cinta::where(less(x, s.a), 0, cinta::where(greater(x, s.b), 0, scalar_like(x, 1)));
  };
  return unary(kernels::clamp, x, derivative, {low, high}, where);
}

}  // namespace cinta
