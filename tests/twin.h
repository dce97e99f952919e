// An op with two outputs.
#pragma once
#include <vector>

#include "cinta/autograd/function.h"
#include "cinta/ops/elementwise.h"

namespace cinta::testing {

/// x and 3x; remembers which output's gradients came.
struct Twin {
  static constexpr const char* name = "twin";
  std::vector<bool>* came;
  std::vector<Tensor> forward(const Tensor& x) { return {affine(x, 1, 0), affine(x, 3, 0)}; }
  void save(const std::vector<Tensor>&, const Tensor&) {}
  void backward(std::span<const Tensor> dys, autograd::Sinks sinks) {
    *came = {static_cast<bool>(dys[0]), static_cast<bool>(dys[1])};
    Tensor sum;
    if (dys[0]) sum = dys[0];
    if (dys[1]) sum = sum ? add(sum, affine(dys[1], 3, 0)) : affine(dys[1], 3, 0);
    sinks[0].put(sum);
  }
};

}  // namespace cinta::testing
