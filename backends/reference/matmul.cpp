// Matrix products and the activation behind them, as three nested loops.
#include "cinta/backends/kernels/matmul.h"

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/reference/element.h"

namespace cinta::oracle {
namespace {

void multiply(View y, View a, View b, float alpha, float beta) {
  for (const Index& batch : Indices(leading(y.shape, y.rank() - 2))) {
    const auto left = rows(part(a, batch)), right = rows(part(b, batch).transposed());
    const View out = part(y, batch);
    for (int64_t i = 0; i < out.size(0); ++i)
      for (int64_t j = 0; j < out.size(1); ++j) blend(at(out, i, j), alpha * inner_product(left[i], right[j]), beta);
  }
}

void multiply_add_bias(View y, View x, View w, View bias) {
  const auto inputs = rows(x), weights = rows(w);
  const auto added = values(bias, y.size(1), 0);
  for (int64_t i = 0; i < y.size(0); ++i)
    for (int64_t j = 0; j < y.size(1); ++j) at(y, i, j) = inner_product(inputs[i], weights[j]) + added[j];
}

void weight_gradients(View dw, View dbias, View dy, View x, float dw_beta, float dbias_beta) {
  multiply(dw, dy.transposed(), x, 1, dw_beta);
  std::vector<double> column_sums(static_cast<size_t>(dy.size(1)), 0);
  for (int64_t i = 0; i < dy.size(0); ++i)
    for (int64_t j = 0; j < dy.size(1); ++j) column_sums[j] += at(dy, i, j);
  blend(dbias, column_sums, dbias_beta);
}

using kernels::Activation;

/// act(z) and act'(z) are the unary rows of the same name; only `none` has no row.
kernels::UnaryRow* row_of(Activation activation) {
  switch (activation) {
    case Activation::none:
      return nullptr;
    case Activation::relu:
      return &kernels::relu;
    case Activation::gelu:
      return &kernels::gelu;
    case Activation::gelu_tanh:
      return &kernels::gelu_tanh;
    case Activation::silu:
      return &kernels::silu;
    case Activation::tanh:
      return &kernels::tanh;
  }
  __builtin_unreachable();
}

View scalar_view(double& value) { return {&value, Shape{}, Shape{}, Dtype::f64, true}; }

double activated(Activation activation, double z) {
  double y = z;
  if (auto* row = row_of(activation)) row->forward(reference, scalar_view(y), scalar_view(z), {});
  return y;
}

double slope(Activation activation, double z) {
  double dy = 1, dx = 1;
  if (auto* row = row_of(activation)) {
    double read = row->reads == kernels::Reads::input ? z : activated(activation, z);
    row->backward(reference, scalar_view(dx), scalar_view(dy), scalar_view(read), {});
  }
  return dx;
}

void activate(View y, View slopes, View x, Activation activation) {
  for (int64_t i = 0; i < y.size(0); ++i)
    for (int64_t j = 0; j < y.size(1); ++j) {
      const double z = at(x, i, j);
      if (slopes) at(slopes, i, j) = slope(activation, z);
      at(y, i, j) = activated(activation, z);
    }
}

void activation_gradients(View dx, View dbias, View dy, View slopes, float beta) {
  std::vector<double> column_sums(static_cast<size_t>(dx.size(1)), 0);
  for (int64_t i = 0; i < dx.size(0); ++i)
    for (int64_t j = 0; j < dx.size(1); ++j) {
      const double gradient = at(dy, i, j) * at(slopes, i, j);
      at(dx, i, j) = gradient;
      column_sums[j] += gradient;
    }
  blend(dbias, column_sums, beta);
}

const Install matmul{kernels::matmul, reference, multiply};
const Install linear{kernels::linear, reference, multiply_add_bias};
const Install linear_weight_backward{kernels::linear_weight_backward, reference, weight_gradients};
const Install activation{kernels::activation, reference, activate};
const Install activation_backward{kernels::activation_backward, reference, activation_gradients};

}  // namespace
}  // namespace cinta::oracle
