// What the tests of autocast share: its two types, and a count of casts.
#pragma once
#include <string_view>

#include "cinta/autograd/autocast.h"

namespace cinta::testing {

/// The bits of a tensor's elements, as numbers that compare.
inline std::vector<float> values(const Tensor& x) { return to_vector<float>(x); }

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
