// Cutting a product along its sum, and putting it together.
#include "cinta/backends/cpu/halves.h"

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/core/context.h"

namespace cinta {
namespace {

Tensor workspace(const Shape& shape) {
  const CategoryScope scope(Category::workspace);
  return empty(shape);
}

}  // namespace

Halves::Halves(const Gemm& whole, int64_t unit) : rest(workspace({whole.m, whole.n})), first(whole), second(whole) {
  first.k = ((whole.k + 1) / 2 + unit - 1) / unit * unit;
  second.k = whole.k - first.k;
  second.a.data = whole.a.at(0, first.k);
  second.b.data = whole.b.at(first.k, 0);
  second.y = {rest.view().data, whole.n, 1, Dtype::f32};
  second.beta = 0;
}

void Halves::add_up() const {
  const View sum{first.y.data, {first.m, first.n}, {first.y.row, first.y.column}, Dtype::f32, true};
  kernels::accumulate(cpu, sum, rest);
}

}  // namespace cinta
