// matmul and linear: shapes, gradients, and where the gradients go (straight into a main gradient where one waits).
#include "cinta/ops/matmul.h"

#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/reduce.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/check.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/narrow_linear.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/rows.h"
#include "cinta/ops/tf32.h"

namespace cinta {
namespace {

using autograd::apply;
using autograd::mode;
using autograd::Saved;
using autograd::Sinks;

void check_pair(const KernelRow& row, const char* op, const Tensor& left, const Tensor& right, Where where) {
  require<DtypeError>(left && right && is_floating(left.dtype()) && autograd::reconciled(left.dtype(), right.dtype()),
                      op, where, "operands of one floating-point type: lhs ", left, " x rhs ", right);
  require<DeviceError>(left.device() == right.device(), op, where, "operands on one device: lhs ", left, " x rhs ",
                       right);
  check_row(row, op, left, where);
}

/// A view whose last two dimensions are kept and whose leading ones are broadcast to `leading`.
View with_leading(const Tensor& x, const Shape& leading) {
  Shape wanted = leading;
  wanted.push_back(x.size(-2));
  wanted.push_back(x.size(-1));
  View view = x;
  view.strides = broadcast_strides(view.shape, view.strides, wanted);
  view.strides[wanted.rank() - 2] = x.strides()[x.rank() - 2];
  view.strides[wanted.rank() - 1] = x.strides()[x.rank() - 1];
  view.shape = wanted;
  return view;
}

Shape leading_of(const Tensor& x) { return Shape(std::span(x.shape().begin(), static_cast<size_t>(x.rank() - 2))); }

Tensor multiply_matrices(const Tensor& left, const Tensor& right, Where where) {
  const Shape leading = broadcast_shape(leading_of(left), leading_of(right), "matmul", where);
  Shape shape = leading;
  shape.push_back(left.size(-2));
  shape.push_back(right.size(-1));
  Tensor out = empty(shape, left.dtype(), left.device());
  kernels::matmul(left.device(), out, with_leading(left, leading), with_leading(right, leading), 1.0f, 0.0f);
  return out;
}

struct Matmul {
  static constexpr const char* name = "matmul";
  static constexpr bool backward_uses_ops = true;
  Where where;
  Saved left, right;
  Tensor forward(const Tensor& l, const Tensor& r) { return multiply_matrices(l, r, where); }
  void save(const Tensor&, const Tensor& l, const Tensor& r) {
    left.keep(l);
    right.keep(r);
  }
  void backward(const Tensor& dy, Sinks sinks) {
    const Tensor &l = left.get(), &r = right.get();
    if (sinks[0].wanted()) put(sinks[0], dy, transpose(r, -2, -1), l.shape());
    if (sinks[1].wanted()) put(sinks[1], transpose(l, -2, -1), dy, r.shape());
  }
  /// Contributes a x b, written in place unless a leading dimension was broadcast and is summed over.
  void put(autograd::Sink& sink, const Tensor& a, const Tensor& b, const Shape& shape) {
    const Shape leading = broadcast_shape(leading_of(a), leading_of(b), name, where);
    Shape product = leading;
    product.push_back(a.size(-2));
    product.push_back(b.size(-1));
    if (mode().recording || !(product == shape)) return sink.put(sum_to(cinta::matmul(a, b), shape));
    auto [destination, beta] = sink.target(shape, a.device());
    kernels::matmul(a.device(), destination, with_leading(a, leading), with_leading(b, leading), 1.0f, beta);
  }
};

Tensor activate(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return relu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::silu:
      return silu(x);
    case Activation::tanh:
      return tanh(x);
    case Activation::none:
      break;
  }
  return x;
}

struct Linear {
  static constexpr const char* name = "linear";
  Activation activation;
  bool recorded = false;
  Saved x = {}, w = {}, bias = {};
  Saved slopes = {};   // of the activation
  Tensor rising = {};  // the same between forward and save

  /// Without an activation the first one twice.
  std::array<autograd::FusedRow, 2> fused_rows() const {
    const autograd::FusedRow product{&kernels::linear};
    if (activation == Activation::none) return {product, product};
    return {{product, {&kernels::activation, &kernels::activation_backward}}};
  }
  Tensor forward(const Tensor& in, const Tensor& weight, const Tensor& b) {
    const Tensor rows = as_rows(in);
    Shape shape = in.shape();
    shape[shape.rank() - 1] = weight.size(0);
    Tensor out = empty(shape, in.dtype(), in.device());
    const Tensor y = as_rows(out);
    if (activation == Activation::none) {
      kernels::linear(in.device(), y, rows, contiguous(weight), b.view());
    } else {
      // The slopes take the place of the product that they follow from.
      const Tensor product = recorded ? rising = empty_like(y) : y;
      kernels::linear(in.device(), product, rows, contiguous(weight), b.view());
      kernels::activation(in.device(), y, rising.view(), product, activation);
    }
    return out;
  }
  void save(const Tensor&, const Tensor& in, const Tensor& weight, const Tensor& b) {
    x.keep(in);
    w.keep(weight);
    bias.keep(b);
    slopes.keep(std::exchange(rising, {}));
  }
  void backward(const Tensor& dy, Sinks sinks) {
    const Tensor in = as_rows(x.get()), weight = contiguous(w.get());
    const Device device = in.device();
    const bool active = activation != Activation::none;
    const Tensor dz = as_rows(active ? autograd::in_place_of(dy) : dy);
    autograd::Sink::Target dbias{{}, 0};
    if (sinks[2].wanted()) dbias = sinks[2].target({weight.size(0)}, device);
    // Where there is no such row, the two that it is made of.
    const bool together = !active && sinks[1].wanted() && dbias.destination &&
                          kernels::linear_weight_backward.has(device) &&
                          kernels::linear_weight_backward.floats(device).has(dz.dtype());
    if (active) {
      kernels::activation_backward(device, dz, dbias.destination.view(), as_rows(dy), slopes.get(), dbias.beta);
    } else if (dbias.destination && !together) {
      const Tensor row = dbias.destination.with_layout({1, dz.size(1)}, {dz.size(1), 1}, dbias.destination.offset());
      kernels::sum(device, row, dz, dbias.beta);
    }
    // Before x, which may be the bias: what one of them is given is written when the other asks for its target.
    if (sinks[1].wanted()) {
      auto [dw, beta] = sinks[1].target(weight.shape(), device);
      if (together) {
        kernels::linear_weight_backward(device, dw, dbias.destination, dz, in, beta, dbias.beta);
      } else {
        kernels::matmul(device, dw, View(dz).transposed(), in, 1.0f, beta);
      }
    }
    if (sinks[0].wanted()) {
      auto [dx, beta] = sinks[0].target(x.get().shape(), device);
      kernels::matmul(device, as_rows(dx), dz, weight, 1.0f, beta);
    }
  }
  std::vector<Tensor> inputs() { return {x.get(), w.get(), bias ? bias.get() : Tensor()}; }
  Tensor composed(std::span<const Tensor> in) {
    const Tensor& w = in[1];
    Shape shape = in[0].shape();
    const Tensor rows = reshape(in[0], {leading_rows(shape), w.size(1)});
    Tensor y = cinta::matmul(rows, transpose(w, 0, 1));
    if (in[2]) y = y + in[2];
    shape[shape.rank() - 1] = w.size(0);
    return reshape(activate(y, activation), shape);
  }
};

}  // namespace

Tensor matmul(const Tensor& left, const Tensor& right, Where where) {
  check_pair(kernels::matmul, "matmul", left, right, where);
  require<ShapeError>(left.rank() >= 2 && right.rank() >= 2, "matmul", where,
                      "operands have at least two dimensions: lhs ", left, " x rhs ", right);
  require<ShapeError>(left.size(-1) == right.size(-2), "matmul", where, "inner sizes differ: lhs ", left, " x rhs ",
                      right, " (", left.size(-1), " != ", right.size(-2), ")");
  if (multiplies_tf32("matmul", left, where)) [[unlikely]]
    return tf32_result(apply(Matmul{where, {}, {}}, where, tf32_operand(left, where), tf32_operand(right, where)),
                       where);
  return apply(Matmul{where, {}, {}}, where, left, right);
}

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation, Where where) {
  check_pair(kernels::linear, "linear", x, w, where);
  if (activation != Activation::none) check_rows({&kernels::activation}, "linear", x, where);
  require<ShapeError>(x.rank() >= 1 && w.rank() == 2 && x.size(-1) == w.size(1), "linear", where,
                      "x[..,K] and w[N,K]: x ", x, ", w ", w);
  if (bias) {
    check_pair(kernels::linear, "linear", x, bias, where);
    require<ShapeError>(bias.rank() == 1 && bias.size(0) == w.size(0), "linear", where, "bias[N] for w[N,K]: w ", w,
                        ", bias ", bias);
  }
  const std::array<const Tensor*, 3> inputs{&x, &w, &bias};
  if (auto products = autograd::narrow_products(inputs)) [[unlikely]] {
    const Dtype dtype = mode().autocast->low;
    return activate(narrow_linear(std::move(products), x, w, bias, dtype, where), activation);
  }
  if (multiplies_tf32("linear", x, where)) [[unlikely]] {
    const Tensor y = tf32_result(
        apply(Linear{.activation = Activation::none}, where, tf32_operand(x, where), tf32_operand(w, where), Tensor()),
        where);
    return activate(bias ? add(y, bias, where) : y, activation);  // the bias gets sums of what was not rounded
  }
  return apply(Linear{.activation = activation, .recorded = autograd::records(inputs)}, where, x, w, bias);
}

}  // namespace cinta
