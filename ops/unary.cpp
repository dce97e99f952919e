// The one op behind every elementwise function of one tensor.
#include "cinta/ops/unary.h"

#include "cinta/autograd/function.h"
#include "cinta/ops/check.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/rows.h"
#include "cinta/ops/shape.h"

namespace cinta {
namespace {

struct Unary {
  const kernels::UnaryRow* row;
  Derivative derivative;
  kernels::Scalars scalars;
  autograd::Saved x, y;
  static constexpr bool backward_uses_ops = true;

  const char* name() const { return row->forward.name(); }
  Tensor forward(const Tensor& in) {
    Tensor out = empty(in.shape(), in.dtype(), in.device());
    row->forward(in.device(), out, in, scalars);
    return out;
  }
  void save(const Tensor& out, const Tensor& in) {
    if (row->reads == kernels::Reads::output)
      y.keep(out);
    else
      x.keep(in);
  }
  void backward(const Tensor& dy, autograd::Sinks sinks) {
    const Tensor& read = row->reads == kernels::Reads::output ? y.get() : x.get();
    if (autograd::mode().recording) {
      // A row that reads its output writes its derivative with y alone, one that reads its input with x alone. Numbers
      // of 16 bits are rounded once, at the end, as the fused row does.
      const Tensor wide = cast(read, statistics_type(read.dtype()));
      sinks[0].put(cast(cast(dy, wide.dtype()) * derivative(wide, wide, scalars), dy.dtype()));
      return;
    }
    Tensor dx = empty(dy.shape(), dy.dtype(), dy.device());
    row->backward(dy.device(), dx, dy, read, scalars);
    sinks[0].put(std::move(dx));
  }
};

}  // namespace

Tensor unary(const kernels::UnaryRow& row, const Tensor& x, Derivative derivative, kernels::Scalars scalars,
             Where where) {
  check_floating(row.forward, row.forward.name(), "x", x, where);
  return autograd::apply(Unary{&row, derivative, scalars, {}, {}}, where, x);
}

}  // namespace cinta
