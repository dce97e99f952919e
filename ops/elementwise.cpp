// Elementwise ops: broadcasting is done here, with strides of 0; the kernels see views of one shape.
#include "cinta/ops/elementwise.h"

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
    return run_binary(Self::row(), left, right, left.dtype(), where);
  }
  void put_left(Sinks sinks, const Tensor& gradient) { sinks[0].put(sum_to(gradient, left_shape)); }
  void put_right(Sinks sinks, const Tensor& gradient) { sinks[1].put(sum_to(gradient, right_shape)); }
};

struct Add : Arithmetic<Add> {
  static constexpr const char* name = "add";
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
    const Tensor zero = zeros({}, dy.dtype(), dy.device());
    if (sinks[1].wanted()) sinks[1].put(sum_to(cinta::where(condition.get(), dy, zero), left_shape));
    if (sinks[2].wanted()) sinks[2].put(sum_to(cinta::where(condition.get(), zero, dy), right_shape));
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

Tensor compare(const kernels::Binary& row, const Tensor& left, const Tensor& right, Where where) {
  check_pair(row, row.name(), left, right, where);
  return run_binary(row, left, right, Dtype::boolean, where);
}

/// A tensor of one element that broadcasts against x.
Tensor scalar_like(const Tensor& x, double value) { return full({}, value, x.dtype(), x.device()); }

}  // namespace

Tensor add(const Tensor& left, const Tensor& right, Where where) { return arithmetic<Add>(left, right, where); }
Tensor subtract(const Tensor& left, const Tensor& right, Where where) {
  return arithmetic<Subtract>(left, right, where);
}
Tensor multiply(const Tensor& left, const Tensor& right, Where where) {
  return arithmetic<Multiply>(left, right, where);
}
Tensor divide(const Tensor& left, const Tensor& right, Where where) { return arithmetic<Divide>(left, right, where); }

Tensor equal(const Tensor& left, const Tensor& right, Where where) {
  return compare(kernels::equal, left, right, where);
}
Tensor not_equal(const Tensor& left, const Tensor& right, Where where) {
  return compare(kernels::not_equal, left, right, where);
}
Tensor less(const Tensor& left, const Tensor& right, Where where) { return compare(kernels::less, left, right, where); }
Tensor less_equal(const Tensor& left, const Tensor& right, Where where) {
  return compare(kernels::less_equal, left, right, where);
}
Tensor greater(const Tensor& left, const Tensor& right, Where where) {
  return compare(kernels::greater, left, right, where);
}
Tensor greater_equal(const Tensor& left, const Tensor& right, Where where) {
  return compare(kernels::greater_equal, left, right, where);
}

Tensor where(const Tensor& condition, const Tensor& left, const Tensor& right, Where place) {
  check_pair(kernels::where, "where", left, right, place);
  require<DtypeError>(condition && condition.dtype() == Dtype::boolean, "where", place,
                      "the condition is bool: ", condition);
  require<DeviceError>(condition.device() == left.device(), "where", place, "one device: ", condition, " with ", left);
  return apply(WhereOp{place, {}, {}, {}}, place, condition, left, right);
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
      kernels::log, x, [](const Tensor& x, const Tensor&, Scalars) { return pow(x, -1); }, {}, where);
}
Tensor sqrt(const Tensor& x, Where where) {
  return unary(
      kernels::sqrt, x, [](const Tensor&, const Tensor& y, Scalars) { return pow(y, -1) * 0.5; }, {}, where);
}
Tensor rsqrt(const Tensor& x, Where where) {
  return unary(
      kernels::rsqrt, x, [](const Tensor&, const Tensor& y, Scalars) { return pow(y, 3) * -0.5; }, {}, where);
}
Tensor pow(const Tensor& x, double exponent, Where where) {
  auto derivative = [](const Tensor& x, const Tensor&, Scalars s) {
    return s.a == 0 ? scalar_like(x, 0) : pow(x, s.a - 1) * s.a;
  };
  return unary(kernels::pow, x, derivative, {exponent, 0}, where);
}
Tensor abs(const Tensor& x, Where where) {
  auto sign = [](const Tensor& x, const Tensor&, Scalars) {
    const Tensor zero = scalar_like(x, 0);
    return cinta::where(less(x, zero), scalar_like(x, -1), cinta::where(greater(x, zero), scalar_like(x, 1), zero));
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
    const Tensor one = scalar_like(x, 1), zero = scalar_like(x, 0);
    return cinta::where(less(x, scalar_like(x, s.a)), zero, cinta::where(greater(x, scalar_like(x, s.b)), zero, one));
  };
  return unary(kernels::clamp, x, derivative, {low, high}, where);
}

}  // namespace cinta
