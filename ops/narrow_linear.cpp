// Three products of codes: y = x w^T, dx = dy w, dw = dy^T x. What is kept for the last is x^T in 8 bits.
#include "cinta/ops/narrow_linear.h"

#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/quantize.h"
#include "cinta/backends/kernels/reduce.h"
#include "cinta/ops/rows.h"

namespace cinta {
namespace {

using autograd::NarrowMatrix;
using autograd::NarrowProducts;
using autograd::Saved;
using autograd::Sinks;

void multiply(View y, const NarrowMatrix& a, const NarrowMatrix& b, float beta) {
  kernels::scaled_matmul(a.codes.device(), y, a.codes, a.scales, {a.block_rows, a.block_columns}, b.codes, b.scales,
                         {b.block_rows, b.block_columns}, beta);
}

/// A NarrowMatrix as an op keeps it.
struct SavedMatrix {
  Saved codes, scales;
  int64_t block_rows = 1, block_columns = 1;
  void keep(const NarrowMatrix& matrix) {
    codes.keep(matrix.codes);
    scales.keep(matrix.scales);
    block_rows = matrix.block_rows, block_columns = matrix.block_columns;
  }
  NarrowMatrix get() { return {codes.get(), scales ? scales.get() : Tensor(), block_rows, block_columns}; }
};

struct NarrowLinear {
  static constexpr const char* name = "linear";
  static constexpr bool takes_any_type = true, backward_uses_ops = true;  // so as to say itself that it has no second
  std::shared_ptr<NarrowProducts> products;
  std::shared_ptr<NarrowProducts::Layer> layer;
  Dtype dtype;
  bool learn;
  Shape shape = {};     // of x
  NarrowMatrix x = {};  // between forward and save
  SavedMatrix turned_x = {}, turned_w = {};

  Tensor forward(const Tensor& in, const Tensor& weight, const Tensor& bias) {
    const Tensor rows = as_rows(in);
    shape = in.shape();
    Shape result = shape;
    result[result.rank() - 1] = weight.size(0);
    Tensor out = empty(result, dtype, in.device());
    const Tensor y = as_rows(out);
    x = products->narrow(*layer, NarrowProducts::input, rows, learn);
    const NarrowMatrix w = products->narrow_weight(*layer, weight, learn).straight;
    if (bias) kernels::copy(in.device(), y, bias.with_layout(y.shape(), {0, bias.strides()[0]}, bias.offset()));
    multiply(y, x, w, bias ? 1 : 0);
    return out;
  }
  void save(const Tensor&, const Tensor& in, const Tensor& weight, const Tensor&) {
    if (in.slot) turned_w.keep(products->narrow_weight(*layer, weight, learn).turned);
    if (weight.slot) turned_x.keep(products->turned(*layer, NarrowProducts::input, as_rows(in), x));
    x = {};
  }
  void backward(const Tensor& dy, Sinks sinks) {
    require(!autograd::mode().recording, name, Where(),
            "gradients of gradients are taken outside of fp8: rounding has none");
    const Tensor rows = as_rows(dy);
    const Device device = rows.device();
    if (sinks[2].wanted()) {
      auto [dbias, beta] = sinks[2].target({rows.size(1)}, device);
      kernels::sum(device, dbias.with_layout({1, rows.size(1)}, {rows.size(1), 1}, dbias.offset()), rows, beta);
    }
    if (!sinks[0].wanted() && !sinks[1].wanted()) return;
    const NarrowMatrix gradient = products->narrow(*layer, NarrowProducts::gradient, rows, true);
    if (sinks[0].wanted()) {
      auto [dx, beta] = sinks[0].target(shape, device);
      multiply(as_rows(dx), gradient, turned_w.get(), beta);
    }
    if (sinks[1].wanted()) {
      const NarrowMatrix in = turned_x.get();
      auto [dw, beta] = sinks[1].target({rows.size(1), in.codes.size(0)}, device);
      multiply(dw, products->turned(*layer, NarrowProducts::gradient, rows, gradient), in, beta);
    }
  }
};

}  // namespace

Tensor narrow_linear(std::shared_ptr<NarrowProducts> products, const Tensor& x, const Tensor& w, const Tensor& bias,
                     Dtype dtype, Where where) {
  products->check(leading_rows(x.shape()), w, where);
  auto layer = products->layer(w);
  const autograd::Mode& now = autograd::mode();
  const bool learn = now.recording && !(now.keeper && now.keeper->replaying());
  return autograd::apply(NarrowLinear{std::move(products), std::move(layer), dtype, learn}, where, x, w, bias);
}

}  // namespace cinta
