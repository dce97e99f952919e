// Copy: the same numbers, in row order, in memory of their own. The one copy that the tape records.
#pragma once
#include <optional>

#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/elementwise.h"

namespace cinta::autograd {

/// y = x, contiguous, in type `dtype` if there is one; its gradient is dy in the type of x. `called` is the name that
/// the tape and errors show.
struct Copy {
  static constexpr bool backward_uses_ops = true;
  const char* called;
  std::optional<Dtype> dtype = {};
  Dtype before = Dtype::f32;
  const char* name() const { return called; }
  Tensor forward(const Tensor& x) {
    before = x.dtype();
    Tensor y = empty(x.shape(), dtype.value_or(before), x.device());
    const auto run = [](const Tensor& to, const Tensor& from) { kernels::copy(to.device(), to, from); };
    run(y, x);
    if (!dtype) carry_shadow(called, y, x, run);
    return y;
  }
  void save(const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) {
    sinks[0].put(dy.dtype() == before ? dy : apply(Copy{called, before}, Where(), dy));
  }
};

}  // namespace cinta::autograd
