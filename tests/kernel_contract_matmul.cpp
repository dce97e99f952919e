// Contracts of the matrix products and of the activation behind them.
#include <catch2/catch.hpp>

#include "cinta/backends/kernels/matmul.h"
#include "contract/contract.h"

using namespace cinta;
using namespace cinta::contract;

namespace {

struct Product {
  int64_t m, n, k;
};
const Product products[] = {{1, 1, 1},
                            {1, 7, 3},
                            {7, 1, 17},
                            {3, 5, 1},
                            {17, 63, 33},
                            {64, 64, 64},
                            {1, 257, 63},
                            {33, 10, 257},
                            {0, 3, 4},
                            {3, 0, 4},
                            {3, 4, 0},
                            {33, 17, 300},
                            {2, 5, 1000},
                            // Cut into several tiles, with rests at the lower and the right edge.
                            {70, 520, 9},
                            {260, 33, 9},
                            {2100, 3, 5},
                            // Summed in parts.
                            {9, 33, 8193}};

void try_matmul(const Shape& batch, const Product& p, Dtype in, Dtype out, Layout a_layout, Layout b_layout,
                Layout y_layout, float alpha, float beta) {
  Shape a_shape = batch, b_shape = batch, y_shape = batch;
  for (int64_t size : {p.m, p.k}) a_shape.push_back(size);
  for (int64_t size : {p.k, p.n}) b_shape.push_back(size);
  for (int64_t size : {p.m, p.n}) y_shape.push_back(size);
  Trial trial(kernels::matmul, join(in, a_shape, " x ", b_shape, " to ", out, " layouts ", int(a_layout), " ",
                                    int(b_layout), " ", int(y_layout), " alpha ", alpha, " beta ", beta));
  trial.accuracy.length = p.k;
  const Handle a = trial.input(a_shape, in, uniform(a_shape, -1, 1), a_layout);
  const Handle b = trial.input(b_shape, in, uniform(b_shape, -1, 1, 2), b_layout);
  const Handle y =
      beta == 0 ? trial.output(y_shape, out, y_layout) : trial.both(y_shape, out, uniform(y_shape, -1, 1, 3), y_layout);
  trial.run([&](const Call& c) { kernels::matmul(c.device, c(y), c(a), c(b), alpha, beta); });
}

void matmul_contract() {
  for (Dtype dtype : trained_types) {
    for (const Product& p : products) {
      try_matmul({}, p, dtype, dtype, Layout::dense, Layout::dense, Layout::dense, 1, 0);
      try_matmul({}, p, dtype, dtype, Layout::dense, Layout::transposed, Layout::dense, 1, 0);
      try_matmul({}, p, dtype, dtype, Layout::transposed, Layout::dense, Layout::dense, 1, 0);
      try_matmul({}, p, dtype, Dtype::f32, Layout::transposed, Layout::dense, Layout::dense, 1, 1);  // dW += dy^T x
      try_matmul({}, p, dtype, dtype, Layout::dense, Layout::dense, Layout::dense, 0.5f, 0.25f);
    }
    for (Layout a : any_layout)
      for (Layout b : any_layout)
        for (Layout y : {Layout::dense, Layout::padded, Layout::strided, Layout::transposed})
          try_matmul({2}, {5, 7, 9}, dtype, dtype, a, b, y, 1, 0);
    for (const Shape& batch : {Shape{1}, Shape{3}, Shape{2, 3}, Shape{0}})
      try_matmul(batch, {5, 17, 8}, dtype, dtype, Layout::dense, Layout::dense, Layout::dense, 0.125f, 0);
    for (Layout other : {Layout::dense, Layout::transposed}) {
      try_matmul({3}, {5, 17, 8}, dtype, dtype, Layout::repeated_rows, other, Layout::dense, 1, 0);
      try_matmul({3}, {5, 17, 8}, dtype, dtype, other, Layout::repeated_rows, Layout::dense, 1, 1);
    }
    try_matmul({}, {5, 17, 8}, dtype, dtype, Layout::repeated_rows, Layout::repeated_last, Layout::dense, 1, 0);
  }
}

void linear_contract() {
  for (Dtype dtype : trained_types)
    for (const Product& p : products)
      for (const char* kind : {"", " bias", " f32 bias", " strided bias"})
        for (Layout layout : contiguous_layouts) {
          Trial trial(kernels::linear, join(dtype, " ", p.m, "x", p.n, "x", p.k, kind, " layout ", int(layout)));
          trial.accuracy.length = p.k + 1;
          const Handle x = trial.input({p.m, p.k}, dtype, uniform(p.m * p.k, -1, 1), layout);
          const Handle w = trial.input({p.n, p.k}, dtype, uniform(p.n * p.k, -1, 1, 2), layout);
          Handle bias;
          if (*kind)
            bias =
                trial.input({p.n}, kind == std::string_view(" f32 bias") ? Dtype::f32 : dtype, uniform(p.n, -1, 1, 3),
                            kind == std::string_view(" strided bias") ? Layout::strided : layout);
          const Handle y = trial.output({p.m, p.n}, dtype, layout);
          trial.run([&](const Call& c) { kernels::linear(c.device, c(y), c(x), c(w), c(bias)); });
        }
}

void linear_weight_backward_contract() {
  for (Dtype dtype : trained_types)
    for (Dtype wide : {dtype, Dtype::f32})
      for (const Product& p : products)
        for (float beta : {0.0f, 1.0f, 0.5f})
          for (Layout layout : contiguous_layouts) {
            Trial trial(kernels::linear_weight_backward, join(dtype, " to ", wide, " ", p.m, "x", p.n, "x", p.k,
                                                              " beta ", beta, " layout ", int(layout)));
            trial.accuracy.length = p.m + 1;
            const Handle dy = trial.input({p.m, p.n}, dtype, uniform(p.m * p.n, -1, 1), layout);
            const Handle x = trial.input({p.m, p.k}, dtype, uniform(p.m * p.k, -1, 1, 2), layout);
            const auto changed = [&](const Shape& shape, uint64_t seed) {
              return beta == 0 ? trial.output(shape, wide, layout)
                               : trial.both(shape, wide, uniform(shape, -1, 1, seed), layout);
            };
            const Handle dw = changed({p.n, p.k}, 3), dbias = changed({p.n}, 4);
            trial.run([&](const Call& c) {
              kernels::linear_weight_backward(c.device, c(dw), c(dbias), c(dy), c(x), beta, beta == 0.5f ? 1 : beta);
            });
          }
}

using kernels::Activation;
constexpr Activation activations[] = {Activation::none,      Activation::relu, Activation::gelu,
                                      Activation::gelu_tanh, Activation::silu, Activation::tanh};
const Shape matrices[] = {{0, 3}, {1, 1}, {1, 17}, {7, 1}, {5, 63}, {3, 257}, {130, 33}, {2, 4100}};
// What cancels inside the formulas is never larger than their argument, here at most 8.
constexpr double activation_floor = 8;

void activation_contract() {
  for (Dtype dtype : trained_types)
    for (const Shape& shape : matrices)
      for (Activation activation : activations)
        for (const char* slopes : {"", " slopes", " slopes in place"})
          for (bool in_place : {false, true}) {
            const bool with_slopes = *slopes, over_x = slopes == std::string_view(" slopes in place");
            if (over_x && in_place) continue;
            Trial trial(kernels::activation,
                        join(dtype, shape, " activation ", int(activation), slopes, in_place ? " in place" : ""));
            trial.accuracy.floor = activation_floor;
            const Values values = uniform(shape, -6, 6);
            const Handle x = in_place || over_x ? trial.both(shape, dtype, values) : trial.input(shape, dtype, values);
            const Handle y = in_place ? x : trial.output(shape, dtype);
            const Handle slope = over_x ? x : with_slopes ? trial.output(shape, dtype) : Handle{};
            trial.run([&](const Call& c) { kernels::activation(c.device, c(y), c(slope), c(x), activation); });
          }
}

void activation_backward_contract() {
  std::vector<Shape> shapes(std::begin(matrices), std::end(matrices));
  shapes.push_back({512, 4100});  // rows and columns of more than a block
  for (Dtype dtype : trained_types)
    for (const Shape& shape : shapes)
      for (bool in_place : {false, true})
        for (const char* sums : {"", " sums", " more sums"}) {
          if (shape[0] == 512 && (dtype != Dtype::f32 || in_place || !*sums)) continue;  // large
          Trial trial(kernels::activation_backward, join(dtype, shape, sums, in_place ? " in place" : ""));
          trial.accuracy.length = shape[0];
          trial.accuracy.floor = 4 * static_cast<double>(shape[0]);
          const Values gradient = uniform(shape, -2, 2, 4);
          const Handle slope = trial.input(shape, dtype, uniform(shape, -2, 2));
          const Handle dy = in_place ? trial.both(shape, dtype, gradient) : trial.input(shape, dtype, gradient);
          const Handle dx = in_place ? dy : trial.output(shape, dtype);
          const bool adds = sums == std::string_view(" more sums");
          const Handle dbias = !*sums ? Handle{}
                               : adds ? trial.both({shape[1]}, Dtype::f32, uniform(shape[1], -2, 2, 6))
                                      : trial.output({shape[1]}, Dtype::f32);
          trial.run([&](const Call& c) {
            kernels::activation_backward(c.device, c(dx), c(dbias), c(dy), c(slope), adds ? 1 : 0);
          });
        }
}

const Contract matmul_here{{&kernels::matmul}, matmul_contract};
const Contract linear_here{{&kernels::linear}, linear_contract};
const Contract linear_weight_backward_here{{&kernels::linear_weight_backward}, linear_weight_backward_contract};
const Contract activation_here{{&kernels::activation}, activation_contract};
const Contract activation_backward_here{{&kernels::activation_backward}, activation_backward_contract};

}  // namespace

TEST_CASE("contracts of the matrix products", "[kernel_contract]") { check_contracts(); }
