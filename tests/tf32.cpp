// TF32: products are those of rounded operands, forward and backward, and nothing else is rounded.
#include <catch2/catch.hpp>

#include "autocast_helpers.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/float_formats.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/attention.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "data_helpers.h"

using namespace cinta;
using namespace cinta::autograd;
using namespace cinta::testing;

namespace {

const Autocast tf32_scope{.low = Dtype::f32, .tf32 = true};

Tensor rounded(const Tensor& x) {
  std::vector<float> out;
  for (float value : values(x)) out.push_back(float{tf32(value)});
  return from_values(out, x.shape(), x.device());
}

/// The gradients of `inputs` (detached copies, all wanted) where the product got `seed`, and the product first.
std::vector<std::vector<float>> run(Tensor (*product)(std::span<const Tensor>), std::vector<Tensor> inputs,
                                    const Tensor& seed) {
  for (Tensor& input : inputs) {
    input = detach(input);
    require_gradient(input);
  }
  const Tensor y = product(inputs);
  CHECK(y.dtype() == Dtype::f32);
  std::vector<std::vector<float>> out{values(y)};
  for (const Tensor& gradient : grad({y}, inputs, {.seeds = {seed}})) out.push_back(values(gradient));
  return out;
}

/// A rounded operand lies packed, which one that is not rounded need not, and a product may sum packed rows in another
/// order: 20 terms at most, none above 1, and the sum off by one rounding for each.
constexpr float in_another_order = 20 * 20 * 0x1p-24f;

/// The largest difference of any number.
float difference(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  REQUIRE(a.size() == b.size());
  float out = 0;
  for (size_t list = 0; list < a.size(); ++list) {
    REQUIRE(a[list].size() == b[list].size());
    for (size_t i = 0; i < a[list].size(); ++i) out = std::max(out, std::abs(a[list][i] - b[list][i]));
  }
  return out;
}

}  // namespace

TEST_CASE("in tf32 products are those of rounded operands, forward and backward", "[tf32]") {
  for (Device device : {cpu, reference}) {
    const Tensor x = spread({5, 7}, 1, device), w = spread({3, 7}, 2, device), q = spread({2, 2, 5, 4}, 3, device),
                 k = spread({2, 2, 6, 4}, 4, device), v = spread({2, 2, 6, 4}, 5, device),
                 qkv = spread({2, 5, 24}, 6, device);
    struct Case {
      const char* name;
      std::vector<Tensor> inputs;
      Shape result;
      Tensor (*product)(std::span<const Tensor>);
    };
    for (const auto& [name, inputs, shape, product] :
         {Case{"linear", {x, w}, {5, 3}, [](std::span<const Tensor> in) { return linear(in[0], in[1]); }},
          Case{"matmul",
               {q, reshape(k, {2, 2, 4, 6})},
               {2, 2, 5, 6},
               [](std::span<const Tensor> in) { return matmul(in[0], in[1]); }},
          Case{"matmul, one side transposed and repeated",
               {x, q},
               {2, 2, 7, 4},
               [](std::span<const Tensor> in) { return matmul(transpose(in[0], 0, 1), in[1]); }},
          Case{"attention",
               {q, k, v},
               {2, 2, 5, 4},
               [](std::span<const Tensor> in) { return attention(in[0], in[1], in[2]); }},
          Case{"self_attention", {qkv}, {2, 5, 8}, [](std::span<const Tensor> in) {
                 return self_attention(in[0], 2, {.causal = true});
               }}}) {
      INFO(name << " on " << name_of(device));
      const Tensor seed = spread(shape, 7, device);
      std::vector<Tensor> fed;
      for (const Tensor& input : inputs) fed.push_back(rounded(input));
      const auto expected = run(product, fed, rounded(seed)), plain = run(product, inputs, seed);
      const auto found = [&] {
        const AutocastScope scope(tf32_scope);
        return run(product, inputs, seed);
      }();
      CHECK(difference(found, expected) < in_another_order);
      CHECK(difference(found, plain) > in_another_order);
    }
  }
}

TEST_CASE("in tf32 a bias, an activation and sums are f32, and a module's policy is heeded", "[tf32]") {
  const Tensor x = spread({4, 6}, 1), w = leaf({6, 6}, 2), bias = leaf({6}, 3), dy = spread({4, 6}, 4);
  const Tensor plain = linear(x, w);
  AutocastScope scope(tf32_scope);
  const Tensor y = linear(x, w);
  CHECK(values(y) != values(plain));
  CHECK(values(linear(x, w, bias, Activation::gelu)) == values(gelu(y + bias)));
  CHECK(values(grad({linear(x, w, bias)}, {bias}, {.seeds = {dy}})[0]) == values(sum(dy, {0})));
  CHECK(values(x + dy) == values(dy + x));
  CHECK(linear(cast(x, Dtype::bf16), w).dtype() == Dtype::f32);
  Autocast types = tf32_scope;
  types.modules = {{"net.head"}};
  const AutocastScope inner(types);
  const NameScope net("net"), head("head");
  CHECK(values(linear(x, w)) == values(plain));
}

TEST_CASE("in tf32 a gradient has a gradient", "[tf32]") {
  const Tensor x = leaf({4, 6}, 1), w = leaf({3, 6}, 2), dy = spread({4, 3}, 3), ddw = spread({3, 6}, 4);
  const Tensor y = [&] {
    const AutocastScope scope(tf32_scope);
    return linear(x, w);
  }();
  const Tensor dw = grad({y}, {w}, {.create_graph = true, .seeds = {dy}})[0];
  // dw = round(dy)^T round(x), so that along ddw: round(dy) ddw.
  CHECK(values(grad({dw}, {x}, {.seeds = {ddw}})[0]) == values(matmul(rounded(dy), ddw)));
}

TEST_CASE("tf32 is asked for with f32", "[tf32]") {
  CHECK_THAT(error_of<DtypeError>([] { AutocastScope(Autocast{.tf32 = true}); }),
             Catch::Contains("f32 with TF32, given bf16 with TF32"));
  CHECK_THAT(error_of<DtypeError>([] { AutocastScope(Autocast{.low = Dtype::f32}); }),
             Catch::Contains("f32 with TF32, given f32"));
}
