// What the optimizer tests share: parameters made of values, gradients put there by hand.
#pragma once
#include <cmath>

#include "cinta/autograd/node.h"
#include "cinta/optim/parameter.h"

namespace cinta::testing {

/// A tensor of type `dtype` (f32 or f64) holding `values`.
inline Tensor make(const std::vector<double>& values, const Shape& shape, Dtype dtype, Device device) {
  if (dtype == Dtype::f64) return from_values(values, shape, device);
  return from_values(std::vector<float>(values.begin(), values.end()), shape, device);
}

inline Tensor leaf(const std::vector<double>& values, const Shape& shape, Dtype dtype = Dtype::f64,
                   Device device = reference) {
  Tensor tensor = make(values, shape, dtype, device);
  return autograd::require_gradient(tensor);
}

/// As if a backward had left `values` in the gradient of `leaf`.
inline void set_gradient(const Tensor& leaf, const std::vector<double>& values) {
  const Tensor given = make(values, leaf.shape(), leaf.dtype(), leaf.device());
  if (leaf.slot->gradient)
    copy_bytes(leaf.slot->gradient, given);
  else
    leaf.slot->gradient = given;
  leaf.slot->has_gradient = true;
}

/// f(0), f(1), ...
template <class F>
std::vector<double> sequence(int64_t count, F f) {
  std::vector<double> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(f(static_cast<double>(i)));
  return out;
}

}  // namespace cinta::testing
