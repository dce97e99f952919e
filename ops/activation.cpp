// Activations: the kernel row and the derivative written with ops, side by side.
#include "cinta/ops/activation.h"

#include "cinta/ops/elementwise.h"
#include "cinta/ops/shape.h"
#include "cinta/ops/unary.h"

namespace cinta {
namespace {

using kernels::Scalars;

Tensor constant(const Tensor& like, double value) { return full({}, value, like.dtype(), like.device()); }
/// positive where x > 0, otherwise negative.
Tensor choose(const Tensor& x, const Tensor& positive, const Tensor& negative) {
  return cinta::where(greater(x, 0), positive, negative);
}

}  // namespace

Tensor relu(const Tensor& x, Where where) {
  return unary(
      kernels::relu, x,
      [](const Tensor&, const Tensor& y, Scalars) { return choose(y, constant(y, 1), constant(y, 0)); }, {}, where);
}

Tensor leaky_relu(const Tensor& x, double slope, Where where) {
  auto derivative = [](const Tensor& x, const Tensor&, Scalars s) {
    return choose(x, constant(x, 1), constant(x, s.a));
  };
  return unary(kernels::leaky_relu, x, derivative, {slope, 0}, where);
}

Tensor gelu(const Tensor& x, Where where) {
  auto derivative = [](const Tensor& x, const Tensor&, Scalars) {
    constexpr double sqrt_half = 0.7071067811865476, inverse_sqrt_two_pi = 0.3989422804014327;
    return (erf(x * sqrt_half) + 1.0) * 0.5 + x * exp(x * x * -0.5) * inverse_sqrt_two_pi;
  };
  return unary(kernels::gelu, x, derivative, {}, where);
}

Tensor gelu_tanh(const Tensor& x, Where where) {
  auto derivative = [](const Tensor& x, const Tensor&, Scalars) {
    constexpr double k = 0.7978845608028654, c = 0.044715;  // sqrt(2/pi)
    // With tanh(u) = 2 s - 1 and 1 - tanh(u)^2 = 4 s rest, which do not cancel: s = sigmoid(2u), rest = sigmoid(-2u).
    const Tensor square = x * x, twice = (x + square * x * c) * (2 * k), s = sigmoid(twice), rest = sigmoid(-twice);
    return s + x * s * rest * ((square * (3 * c) + 1.0) * (2 * k));
  };
  return unary(kernels::gelu_tanh, x, derivative, {}, where);
}

Tensor silu(const Tensor& x, Where where) {
  auto derivative = [](const Tensor& x, const Tensor&, Scalars) {
    const Tensor s = sigmoid(x);
    return s * (x * (1.0 - s) + 1.0);
  };
  return unary(kernels::silu, x, derivative, {}, where);
}

Tensor tanh(const Tensor& x, Where where) {
  return unary(
      kernels::tanh, x, [](const Tensor&, const Tensor& y, Scalars) { return 1.0 - y * y; }, {}, where);
}

Tensor sigmoid(const Tensor& x, Where where) {
  return unary(
      kernels::sigmoid, x, [](const Tensor&, const Tensor& y, Scalars) { return y * (1.0 - y); }, {}, where);
}

Tensor softplus(const Tensor& x, Where where) {
  auto derivative = [](const Tensor& x, const Tensor&, Scalars) {
    // sigmoid(x), by the tail that lies below 1/2: the slope of a sigmoid near 1 would be lost in 1 - y.
    const Tensor tail = sigmoid(choose(x, -x, x));
    return choose(x, 1.0 - tail, tail);
  };
  return unary(kernels::softplus, x, derivative, {}, where);
}

Tensor elu(const Tensor& x, double alpha, Where where) {
  auto derivative = [](const Tensor& x, const Tensor&, Scalars s) {
    const Tensor below = cinta::where(greater(x, 0), 0, x);  // no overflow where it is not used
    return choose(x, constant(x, 1), exp(below) * s.a);
  };
  return unary(kernels::elu, x, derivative, {alpha, 0}, where);
}

}  // namespace cinta
