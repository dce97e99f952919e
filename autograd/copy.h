// Copy: the same numbers, in row order, in memory of their own. The one copy that the tape records.
#pragma once
#include "cinta/autograd/sink.h"
#include "cinta/backends/kernels/elementwise.h"

namespace cinta::autograd {

/// y = x, contiguous; its gradient is dy. `called` is the name that the tape and errors show.
struct Copy {
  static constexpr bool backward_uses_ops = true;
  const char* called;
  const char* name() const { return called; }
  Tensor forward(const Tensor& x) {
    Tensor y = empty(x.shape(), x.dtype(), x.device());
    kernels::copy(x.device(), y, x);
    return y;
  }
  void save(const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) { sinks[0].put(dy); }
};

}  // namespace cinta::autograd
