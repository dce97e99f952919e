// One rounding, of a value on its way to a product or of the gradient that comes back from behind it.
#include "cinta/ops/tf32.h"

#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/quantize.h"
#include "cinta/ops/check.h"
#include "cinta/ops/rows.h"

namespace cinta {
namespace {

using autograd::apply;
using autograd::Sinks;

struct Operand {
  static constexpr const char* name = "tf32";
  static constexpr bool backward_uses_ops = true;
  Tensor forward(const Tensor& x) {
    const Tensor rows = as_rows(x), y = empty(x.shape(), Dtype::f32, x.device());
    const kernels::Blocks whole{std::max<int64_t>(1, rows.size(0)), std::max<int64_t>(1, rows.size(1))};
    kernels::quantize(x.device(), as_rows(y), rows, {}, whole, {});
    return y;
  }
  void save(const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) { sinks[0].put(dy); }
};

struct Result {
  static constexpr const char* name = "tf32";
  static constexpr bool backward_uses_ops = true;
  Tensor forward(const Tensor& y) { return detach(y); }
  void save(const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) { sinks[0].put(tf32_operand(dy, Where())); }
};

}  // namespace

bool multiplies_tf32(const char* op, const Tensor& x, Where where) {
  const bool multiplies = autograd::multiplies_tf32();
  if (multiplies) [[unlikely]]
    check_rows({&kernels::quantize}, op, x, where);
  return multiplies;
}

Tensor tf32_operand(const Tensor& x, Where where) { return x.dtype() == Dtype::f32 ? apply(Operand{}, where, x) : x; }
Tensor tf32_result(const Tensor& y, Where where) { return y.dtype() == Dtype::f32 ? apply(Result{}, where, y) : y; }

}  // namespace cinta
