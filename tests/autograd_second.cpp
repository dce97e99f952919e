// Gradients and gradients of gradients of whole compositions against finite differences in f64: what single-op tests
// cannot see is how fused ops, views and shared tensors pass through each other.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <utility>

#include "cinta/autograd/gradcheck.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/random.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/attention.h"
#include "cinta/ops/dropout.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/embedding.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/normalize.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "cinta/ops/softmax.h"

using namespace cinta;
using namespace cinta::autograd;

namespace {

/// Fixed numbers in [-1, 1).
Tensor numbers(const Shape& shape, uint32_t stream) {
  std::vector<double> out(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = 2.0 * to_uniform(random_word(1, stream, 0, i)) - 1.0;
  return from_values(out, shape, reference);
}

void check_both(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  CHECK(gradcheck(f, inputs) < 1e-7);
  CHECK(second_gradcheck(f, inputs) < 1e-6);
}

}  // namespace

TEST_CASE("a perceptron with a classification loss, twice differentiated", "[autograd]") {
  const Tensor labels = from_values(std::vector<int64_t>{2, -100, 0}, {3}, reference);
  check_both(
      [labels](const std::vector<Tensor>& in) {
        const Tensor h = linear(in[0], in[1], in[2], kernels::Activation::tanh);
        return cross_entropy(linear(h, in[3], {}, kernels::Activation::none), labels, {.label_smoothing = 0.1});
      },
      {numbers({3, 4}, 1), numbers({5, 4}, 2), numbers({5}, 3), numbers({3, 5}, 4)});
}

TEST_CASE("half a Transformer layer with padding and dropout, twice differentiated", "[autograd]") {
  const Random random(5, reference);
  const Tensor lengths = from_values(std::vector<int32_t>{3, 2}, {2}, reference);
  check_both(
      [&](const std::vector<Tensor>& in) {
        const Tensor qkv = linear(in[0], in[1], in[2]);
        const Tensor mixed = self_attention(qkv, 2, {.lengths = lengths, .dropout = random.site("attention", 0.3)});
        return residual_norm(linear(mixed, in[3]), in[4], in[0], in[5], in[6],
                             {.eps = 1e-3, .dropout = random.site("output", 0.3)});
      },
      {numbers({2, 3, 4}, 1), numbers({12, 4}, 2), numbers({12}, 3), numbers({4, 4}, 4), numbers({4}, 5),
       numbers({4}, 6), numbers({4}, 7)});
}

TEST_CASE("a table read twice and used as weights, twice differentiated", "[autograd]") {
  const Tensor index = from_values(std::vector<int64_t>{3, 0, 3}, {3}, reference),
               labels = from_values(std::vector<int64_t>{1, 2, 3}, {3}, reference);
  check_both(
      [&](const std::vector<Tensor>& in) {
        const Tensor rows = layer_norm(gather_rows(in[0], index) * in[1], {}, {}, 1e-2);
        return sum(cross_entropy(linear(gelu(rows), in[0]), labels, {.reduction = Reduction::none}));
      },
      {numbers({4, 3}, 1), numbers({3}, 2)});
}

TEST_CASE("views, broadcasting and reductions, twice differentiated", "[autograd]") {
  check_both(
      [](const std::vector<Tensor>& in) {
        const Tensor wide = permute(expand(unsqueeze(in[0], 0), {2, 3, 4}), {2, 0, 1});
        const std::vector<Tensor> parts = split(wide, {1, 3}, 0);
        const Tensor joined = concat({parts[1] * in[1], parts[0]}, 0);
        const Tensor odd = slice(joined, 0, 1, 4) - mean(joined, {0}, true);
        return logsumexp(softmax(odd, 1) * exp(reshape(odd, {3, 2, 3}) * 0.5), {0, 2}) / (var(in[0]) + 1.0);
      },
      {numbers({3, 4}, 1), numbers({2, 1}, 2)});
}

TEST_CASE("a gradient's length as a penalty trains through the tape", "[autograd]") {
  // d/dw of |d(loss)/dx|^2 for loss = sum((x w)^2): |2 w^2 x|^2 -> 16 w^3 x^2.
  Tensor x = from_values(std::vector<float>{3}, {1}), w = from_values(std::vector<float>{0.5f}, {1});
  require_gradient(x);
  require_gradient(w);
  const Tensor loss = sum(x * w * x * w);
  const std::vector<Tensor> first = grad({loss}, {x}, {.create_graph = true});
  backward(sum(first[0] * first[0]));
  CHECK(to_vector<float>(gradient(w))[0] == Approx(16 * 0.125 * 9));
  CHECK(to_vector<float>(gradient(x))[0] == Approx(8 * 0.0625 * 3));
}

TEST_CASE("backward can itself be recorded, into leaves' gradients", "[autograd]") {
  Tensor x = from_values(std::vector<float>{3}, {1});
  require_gradient(x);
  backward(x * x * x, {.create_graph = true});
  const Tensor slope = gradient(x);
  CHECK(tracked(slope));
  CHECK(to_vector<float>(slope)[0] == 27);
  CHECK(to_vector<float>(grad({slope}, {x})[0])[0] == 18);
}

TEST_CASE("recording a walk leaves first gradients of 16 bits as they are", "[autograd]") {
  const auto slope = [](const auto& f, Dtype dtype, bool create_graph) {
    Tensor x = cast(from_values<float>({-5, -3.5f, -0.75f, 0.3f, 2, 6}, {6}), dtype);
    require_gradient(x);
    const Tensor dy = cast(from_values<float>({1, 1, 1, 3, 0.7f, 1}, {6}), dtype);
    return to_vector<float>(cast(grad({f(x)}, {x}, {.create_graph = create_graph, .seeds = {dy}})[0], Dtype::f32));
  };
  using Function = Callback<Tensor(const Tensor&)>;
  std::vector<std::pair<const char*, Function>> functions;
  functions.emplace_back("gelu", [](const Tensor& x) { return gelu(x); });
  functions.emplace_back("gelu_tanh", [](const Tensor& x) { return gelu_tanh(x); });
  functions.emplace_back("silu", [](const Tensor& x) { return silu(x); });
  functions.emplace_back("tanh", [](const Tensor& x) { return tanh(x); });
  functions.emplace_back("sigmoid", [](const Tensor& x) { return sigmoid(x); });
  functions.emplace_back("softplus", [](const Tensor& x) { return softplus(x); });
  functions.emplace_back("elu", [](const Tensor& x) { return elu(x); });
  functions.emplace_back("erf", [](const Tensor& x) { return erf(x); });
  for (const auto& [name, f] : functions)
    for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
      const std::vector<float> plain = slope(f, dtype, false), recorded = slope(f, dtype, true);
      for (size_t i = 0; i < plain.size(); ++i) {
        INFO(name << " in " << name_of(dtype) << ", number " << i);
        // Each rounds once what f32 has to a few units in its last place: at most to neighbours, of which f16 has none
        // closer than 2^-24.
        const double step = dtype == Dtype::bf16 ? 0x1p-7 : 0x1p-10;
        CHECK(std::abs(recorded[i] - plain[i]) <=
              std::max(step * std::abs(plain[i]), dtype == Dtype::f16 ? 0x1p-24 : 0));
      }
    }
}

TEST_CASE("the slope of softplus's slope is there in both tails", "[autograd]") {
  Tensor x = from_values<float>({-24, 0, 24}, {3});
  require_gradient(x);
  const Tensor slope = grad({sum(softplus(x))}, {x}, {.create_graph = true})[0];
  CHECK(to_vector<float>(slope) == std::vector<float>{static_cast<float>(1 / (1 + std::exp(24.0))), 0.5f, 1});
  const std::vector<float> curve = to_vector<float>(grad({sum(slope)}, {x})[0]);
  for (const size_t tail : {0, 2}) CHECK(curve[tail] == Approx(std::exp(-24.0)).epsilon(1e-6));
  CHECK(curve[1] == 0.25f);
}

TEST_CASE("the slope of bce_with_logits in its target is -x, whatever x is", "[autograd]") {
  const std::vector<float> logits{-30.3f, -1e-6f, 0, 1e-6f, 0.1f, 30.3f};
  const Tensor x = from_values(logits, {6});
  Tensor target = from_values<float>({0, 1, 0.5f, 0.3f, 1, 0}, {6});
  require_gradient(target);
  const std::vector<float> slopes = to_vector<float>(grad({bce_with_logits(x, target, Reduction::sum)}, {target})[0]);
  for (size_t i = 0; i < logits.size(); ++i) CHECK(slopes[i] == -logits[i]);
}
