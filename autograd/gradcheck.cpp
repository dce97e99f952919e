// Central differences, one element at a time.
#include "cinta/autograd/gradcheck.h"

#include <cmath>

#include "cinta/autograd/mode.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/random.h"

namespace cinta::autograd {
namespace {

/// Fixed weights in [-1, 1), so that no two output elements can hide each other's errors.
Tensor weights_like(const Tensor& tensor, uint32_t stream) {
  Tensor out = empty(tensor.shape(), Dtype::f64, tensor.device());
  auto values = out.data<double>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = 2.0 * to_uniform(random_word(7, stream, 0, i)) - 1.0;
  return out;
}

double weighted_sum(const Tensor& tensor, uint32_t stream) {
  const std::vector<double> values = to_vector<double>(tensor),
                            weights = to_vector<double>(weights_like(tensor, stream));
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += values[i] * weights[i];
  return sum;
}

std::vector<Tensor> leaves(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> out;
  for (const Tensor& input : inputs) {
    out.push_back(detach(input));
    if (is_floating(input.dtype())) require_gradient(out.back());
  }
  return out;
}

/// The first gradients of f at `inputs` (those of floating-point inputs).
std::vector<Tensor> gradients(const TensorFunction& f, const std::vector<Tensor>& inputs, bool create_graph) {
  const Tensor y = f(inputs);
  std::vector<Tensor> wanted;
  for (const Tensor& input : inputs)
    if (tracked(input)) wanted.push_back(input);
  return grad({y}, wanted, {.create_graph = create_graph, .seeds = {weights_like(y, 0)}});
}

/// Worst difference between `analytic` and differences of `value`, over all elements of the floating-point inputs.
double compare(const Callback<double()>& value, const std::vector<Tensor>& inputs, const std::vector<Tensor>& analytic,
               double step) {
  double worst = 0;
  size_t next = 0;
  for (const Tensor& input : inputs) {
    if (!is_floating(input.dtype())) continue;
    const Tensor& gradient = analytic[next++];
    const std::vector<double> found =
        gradient ? to_vector<double>(gradient) : std::vector<double>(static_cast<size_t>(input.numel()));
    auto elements = input.data<double>();
    for (size_t i = 0; i < elements.size(); ++i) {
      const double before = elements[i];
      elements[i] = before + step;
      const double up = value();
      elements[i] = before - step;
      const double down = value();
      elements[i] = before;
      const double expected = (up - down) / (2 * step),
                   difference = std::abs(found[i] - expected) / (1 + std::abs(expected));
      if (!(difference <= worst)) worst = difference;  // NaN counts as worst
    }
  }
  return worst;
}

void check_inputs(const std::vector<Tensor>& inputs, Where where) {
  for (const Tensor& input : inputs)
    require<DtypeError>(!is_floating(input.dtype()) || (input.dtype() == Dtype::f64 && input.contiguous()), "gradcheck",
                        where, "contiguous f64 inputs: ", input);
}

}  // namespace

double gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, double step, Where where) {
  check_inputs(inputs, where);
  const std::vector<Tensor> analytic = gradients(f, leaves(inputs), false);
  NoGrad off;
  return compare([&] { return weighted_sum(f(inputs), 0); }, inputs, analytic, step);
}

double second_gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, double step, Where where) {
  check_inputs(inputs, where);
  const std::vector<Tensor> at = leaves(inputs), first = gradients(f, at, true);
  std::vector<Tensor> roots, seeds, wanted;
  for (size_t i = 0; i < first.size(); ++i) {
    if (!first[i] || !tracked(first[i])) continue;
    roots.push_back(first[i]);
    seeds.push_back(weights_like(first[i], static_cast<uint32_t>(i + 1)));
  }
  for (const Tensor& leaf : at)
    if (tracked(leaf)) wanted.push_back(leaf);
  // A linear function's gradient depends on nothing: its second gradient is zero.
  const std::vector<Tensor> analytic =
      roots.empty() ? std::vector<Tensor>(wanted.size()) : grad(roots, wanted, {.seeds = seeds});
  auto value = [&] {
    double sum = 0;
    const std::vector<Tensor> now = gradients(f, leaves(inputs), false);
    for (size_t i = 0; i < now.size(); ++i)
      if (now[i]) sum += weighted_sum(now[i], static_cast<uint32_t>(i + 1));
    return sum;
  };
  return compare(value, inputs, analytic, step);
}

}  // namespace cinta::autograd
