// What the tests of autocast share: its two types, and a count of casts.
#pragma once
#include <string_view>
#include <vector>

#include "cinta/autograd/autocast.h"
#include "cinta/autograd/node.h"
#include "cinta/core/random.h"
#include "cinta/ops/shape.h"

namespace cinta::testing {

/// The bits of a tensor's elements, as numbers that compare.
inline std::vector<float> values(const Tensor& x) { return to_vector<float>(x); }

/// Values in [-1, 1), the same each time.
inline Tensor spread(const Shape& shape, uint32_t stream, Device device = cpu) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.numel(); ++i)
    values.push_back(2 * to_uniform(random_word(3, stream, 0, static_cast<uint64_t>(i))) - 1);
  return from_values(values, shape, device);
}
inline Tensor leaf(const Shape& shape, uint32_t stream, Device device = cpu) {
  Tensor out = spread(shape, stream, device);
  return autograd::require_gradient(out);
}

/// Counts casts from one floating-point type to another.
struct Casts : autograd::Observer {
  int count = 0;
  void before(const char* name, std::span<const Tensor* const> inputs) override {
    count += std::string_view(name) == "cast" && is_floating(inputs[0]->dtype());
  }
  void forward(const char*, Where, std::span<const Tensor>) override {}
  void backward(const autograd::Node&, std::span<const Tensor>) override {}
};

inline const autograd::Autocast bf16_scope{}, f16_scope{.low = Dtype::f16};

}  // namespace cinta::testing
