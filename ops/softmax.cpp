// Softmax along the last dimension; another dimension is brought there by a transposed view.
#include "cinta/ops/softmax.h"

#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/softmax.h"
#include "cinta/ops/check.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"

namespace cinta {
namespace {

struct Softmax {
  static constexpr bool backward_uses_ops = true;
  bool logarithm;
  autograd::Saved y;
  const char* name() const { return logarithm ? "log_softmax" : "softmax"; }
  Tensor forward(const Tensor& x) {
    Tensor out = empty_like(x);
    (logarithm ? kernels::log_softmax : kernels::softmax)(x.device(), out, contiguous(x));
    return out;
  }
  void save(const Tensor& out, const Tensor&) { y.keep(out); }
  void backward(const Tensor& dy, autograd::Sinks sinks) {
    const Tensor& out = y.get();
    if (autograd::mode().recording) {
      if (logarithm)
        sinks[0].put(dy - exp(out) * sum(dy, {-1}, true));
      else
        sinks[0].put(out * (dy - sum(dy * out, {-1}, true)));
      return;
    }
    Tensor dx = empty_like(out);
    (logarithm ? kernels::log_softmax_backward : kernels::softmax_backward)(dx.device(), dx, contiguous(dy), out);
    sinks[0].put(std::move(dx));
  }
};

Tensor along(bool logarithm, const Tensor& x, int dim, Where where) {
  const char* op = logarithm ? "log_softmax" : "softmax";
  check_floating(logarithm ? kernels::log_softmax : kernels::softmax, op, "x", x, where);
  const int normal = normalize_dim(dim, x.rank(), op, where), last = x.rank() - 1;
  if (normal == last) return autograd::apply(Softmax{logarithm, {}}, where, x);
  return transpose(autograd::apply(Softmax{logarithm, {}}, where, transpose(x, normal, last)), normal, last);
}

}  // namespace

Tensor softmax(const Tensor& x, int dim, Where where) { return along(false, x, dim, where); }
Tensor log_softmax(const Tensor& x, int dim, Where where) { return along(true, x, dim, where); }

}  // namespace cinta
