// Rows of the op table: products of matrices and the linear layer with every activation.
#include <catch2/catch.hpp>

#include "cinta/autograd/tape.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "op_table.h"
#include "optim_helpers.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

using In = const Operands&;

// Small, so that no product reaches the far tail of gelu, where 1 + erf cancels.
const Input weight = real({4, 5}, -0.4, 0.4);

Tensor product(In x) { return matmul(x[0], x[1]); }
Tensor affine_map(In x) { return add(matmul(x[0], transpose(x[1], 0, 1)), x[2]); }

/// linear with an activation, and what it is composed of.
template <class F>
OpCase activated(const char* name, Activation activation, F after) {
  return OpCase(
             "linear", {real({batch, 2, 5}), weight, real({4}, -0.5, 0.5)},
             [activation](In x) { return linear(x[0], x[1], x[2], activation); }, name)
      .composed([after](In x) { return after(affine_map(x)); });
}

const OpTable table({
    {"matmul", {real({batch, 5}), real({5, 4})}, product},
    {"matmul", {real({2, 3, 5}), real({2, 5, 4})}, product, "batched"},
    {"matmul", {real({2, batch, 3, 5}), real({5, 4})}, product, "broadcast right"},
    {"matmul", {real({2, 5}), real({batch, 5, 4})}, product, "broadcast left"},
    {"matmul", {real({2, 1, 3, 5}), real({4, 5, 2})}, product, "broadcast both"},
    {"matmul",
     {real({batch, 5, 3}), real({batch, 4, 5})},
     [](In x) { return matmul(transpose(x[0], 1, 2), transpose(x[1], 1, 2)); },
     "transposed"},
    {"matmul", {real({3, batch}), real({batch, 4})}, product, "inner"},
    {"matmul", {real({3, 3})}, [](In x) { return matmul(x[0], x[0]); }, "by itself"},
    activated("", Activation::none, [](Tensor y) { return y; }),
    activated("relu", Activation::relu, [](Tensor y) { return relu(y); }),
    activated("gelu", Activation::gelu, [](Tensor y) { return gelu(y); }),
    activated("gelu_tanh", Activation::gelu_tanh, [](Tensor y) { return gelu_tanh(y); }),
    activated("silu", Activation::silu, [](Tensor y) { return silu(y); }),
    activated("tanh", Activation::tanh, [](Tensor y) { return tanh(y); }),
    OpCase(
        "linear", {real({batch, 5}), weight}, [](In x) { return linear(x[0], x[1]); }, "without bias")
        .composed([](In x) { return matmul(x[0], transpose(x[1], 0, 1)); }),
    OpCase(
        "linear", {real({batch, 5}), weight}, [](In x) { return linear(x[0], x[1], {}, Activation::gelu); },
        "gelu without bias")
        .composed([](In x) { return gelu(matmul(x[0], transpose(x[1], 0, 1))); }),
    {"linear", {real({5}), real({4, 5}), real({4})}, [](In x) { return linear(x[0], x[1], x[2]); }, "one row"},
    {"linear", {real({3, 3}), real({3})}, [](In x) { return linear(x[0], x[0], x[1]); }, "by itself"},
    {"linear", {real({3}), real({3, 3})}, [](In x) { return linear(x[0], x[1], x[0]); }, "plus itself"},
});

}  // namespace

TEST_CASE("products", "[ops]") { check_ops(); }

TEST_CASE("a layer's bias is added before its result is rounded", "[ops]") {
  // 256.75 does not exist in bf16, nor 80000 in f16.
  const Tensor ones = full({1, 2}, 1.0, Dtype::bf16),
               narrow = cast(from_values<float>({256, 0.75}, {1, 2}), Dtype::bf16),
               large = full({1, 4}, 200, Dtype::f16), w = full({1, 4}, 100, Dtype::f16);
  for (const Activation activation : {Activation::none, Activation::relu}) {
    CHECK(item(linear(ones, narrow, full({1}, -256, Dtype::bf16), activation)) == 0.75);
    CHECK(item(linear(large, w, full({1}, -30000, Dtype::f16), activation)) == 49984);
  }
}

TEST_CASE("a bias that is the input, too, gets both gradients", "[ops]") {
  const Tensor x = leaf({1, -2, 3}, {3}, Dtype::f32, cpu),
               w = leaf({1, 2, 3, 4, 5, 6, 7, 8, 10}, {3, 3}, Dtype::f32, cpu);
  const std::vector<float> want{1 + 4 + 7 + 1, 2 + 5 + 8 + 1, 3 + 6 + 10 + 1};
  const Tensor result = x * 1.0;
  CHECK(to_vector<float>(autograd::grad({sum(linear(result, w, result))}, {x, w})[0]) == want);
  autograd::backward(sum(x));
  autograd::backward(sum(linear(x, w, x)));  // added to what is there
  std::vector<float> more = want;
  for (float& value : more) value += 1;
  CHECK(to_vector<float>(autograd::gradient(x)) == more);
}
