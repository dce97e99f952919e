// Dropout is linear: its backward is itself.
#include "cinta/ops/dropout.h"

#include "cinta/autograd/autocast.h"
#include "cinta/autograd/function.h"
#include "cinta/ops/check.h"
#include "cinta/ops/rows.h"

namespace cinta {
namespace {

struct Dropout {
  static constexpr const char* name = "dropout";
  static constexpr bool backward_uses_ops = true;
  Draw draw;
  Tensor forward(const Tensor& x) {
    Tensor y = empty_like(x);
    const Tensor shadow = autograd::shadow_to_write(name, y);
    kernels::dropout(x.device(), as_rows(y), shadow ? as_rows(shadow).view() : View{}, as_rows(x),
                     draw.again(name).row(rows_per_sample(x)));
    return y;
  }
  void save(const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, autograd::Sinks sinks) { sinks[0].put(dropout(dy, draw.again(name))); }
};

}  // namespace

Tensor dropout(const Tensor& x, const DropoutSite& site, Where where) {
  check_floating(kernels::dropout, "dropout", "x", x, where);
  check_dropout("dropout", site, x, where);
  if (site.p == 0) return x;
  return autograd::apply(Dropout{Draw(site)}, where, x);
}

}  // namespace cinta
