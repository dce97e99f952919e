// Rows of the op table: normalisation, dropout and the two fused.
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/autograd/tape.h"
#include "cinta/core/random.h"
#include "cinta/ops/attention.h"
#include "cinta/ops/dropout.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/normalize.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "op_table.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

using In = const Operands&;

const Input x = real({batch, 2, 8}), parameter = real({8});

DropoutSite site(const Tensor& state) { return {state, 7, 0.4}; }

Tensor norm_by_hand(const Tensor& x) { return (x - mean(x, {-1}, true)) / sqrt(var(x, {-1}, 0, true) + 1e-5f); }

const OpTable table({
    OpCase("layer_norm", {x, parameter, parameter}, [](In x) { return layer_norm(x[0], x[1], x[2]); })
        .composed([](In x) { return norm_by_hand(x[0]) * x[1] + x[2]; }),
    OpCase(
        "layer_norm", {x}, [](In x) { return layer_norm(x[0]); }, "without parameters")
        .composed([](In x) { return norm_by_hand(x[0]); }),
    OpCase("rms_norm", {x, parameter}, [](In x) { return rms_norm(x[0], x[1], 1e-3); }).composed([](In x) {
      return x[0] / sqrt(mean(x[0] * x[0], {-1}, true) + 1e-3f) * x[1];
    }),
    OpCase(
        "rms_norm", {x}, [](In x) { return rms_norm(x[0]); }, "without gain")
        .composed([](In x) { return x[0] / sqrt(mean(x[0] * x[0], {-1}, true) + 1e-5f); }),
    {"dropout", {x, random_state()}, [](In x) { return dropout(x[0], site(x[1])); }},
    {"dropout",
     {real({4, 8}), random_state(), whole({4}, 0, 30)},
     [](In x) { return dropout(x[0], site(x[1]).of_rows(x[2], 9)); },
     "of some rows"},
    OpCase(
        "residual_norm", {real({4, 8}), real({4, 8}), random_state(), whole({4}, 0, 30)},
        [](In x) { return residual_norm(x[0], {}, x[1], {}, {}, {.dropout = site(x[2]).of_rows(x[3], 9)}); },
        "of some rows")
        .composed([](In x) { return norm_by_hand(x[1] + dropout(x[0], site(x[2]).of_rows(x[3], 9))); }),
    OpCase("residual_norm", {x, parameter, x, parameter, parameter, random_state()},
           [](In x) { return residual_norm(x[0], x[1], x[2], x[3], x[4], {.dropout = site(x[5])}); })
        .composed([](In x) { return norm_by_hand(x[2] + dropout(x[0] + x[1], site(x[5]))) * x[3] + x[4]; }),
    OpCase(
        "residual_norm", {x, parameter, x, parameter, parameter},
        [](In x) { return residual_norm(x[0], x[1], x[2], x[3], x[4]); }, "without dropout")
        .composed([](In x) { return norm_by_hand(x[2] + x[0] + x[1]) * x[3] + x[4]; }),
    OpCase(
        "residual_norm", {x, x, random_state()},
        [](In x) { return residual_norm(x[0], {}, x[1], {}, {}, {.dropout = site(x[2])}); }, "without parameters")
        .composed([](In x) { return norm_by_hand(x[1] + dropout(x[0], site(x[2]))); }),
    OpCase(
        "residual_norm", {x}, [](In x) { return residual_norm(x[0], {}, x[0], {}, {}); }, "of x and x")
        .composed([](In x) { return norm_by_hand(x[0] + x[0]); }),
});

}  // namespace

TEST_CASE("normalisation and dropout", "[ops]") { check_ops(); }

TEST_CASE("a row of equal numbers is normalised to zeros, however small eps is", "[ops]") {
  for (const int64_t n : {1, 7, 11, 64, 768, 1000})
    for (const double value : {3.3, 1000.3, -0.1, 0.0, 3.3e26, 1e30}) {
      INFO(value << " " << n << " times");
      const Tensor x = full({1, n}, value), none = full({1, n}, 0);
      const auto zero = std::vector<float>(static_cast<size_t>(n), 0);
      CHECK(to_vector<float>(layer_norm(x, {}, {}, 1e-12)) == zero);
      CHECK(to_vector<float>(residual_norm(none, {}, x, {}, {}, {.eps = 1e-12})) == zero);
    }
}

TEST_CASE("the gradient of a row of equal numbers in 16 bits is that of the row as it was summed", "[ops]") {
  // Their sum does not exist in bf16: what rounding it leaves is a thousand times what eps allows.
  Tensor x = full({1, 64}, 0.001, Dtype::bf16), residual = full({1, 64}, 3.296875, Dtype::bf16);
  std::vector<float> alternates(64);
  for (size_t j = 1; j < 64; j += 2) alternates[j] = 1;
  Tensor gain = full({64}, 1.0, Dtype::bf16), bias = full({64}, 0, Dtype::bf16),
         dy = cast(from_values(alternates, {1, 64}), Dtype::bf16);
  for (Tensor* one : {&x, &residual, &gain, &bias}) autograd::require_gradient(*one);
  const Tensor y = residual_norm(x, {}, residual, gain, bias, {.eps = 1e-12});
  CHECK(to_vector<float>(y) == std::vector<float>(64, 0));
  for (const bool recorded : {false, true}) {
    const auto gradients = autograd::grad({sum(y * dy)}, {x, gain}, {.retain_graph = true, .create_graph = recorded});
    CHECK(to_vector<float>(gradients[1]) == std::vector<float>(64, 0));
    const std::vector<float> dx = to_vector<float>(gradients[0]);
    for (size_t j = 0; j < 64; ++j)  // 10^6 (dy - mean(dy))
      CHECK(std::abs(dx[j] / (j % 2 ? 5e5f : -5e5f) - 1) < 0x1p-7f);
  }
}

TEST_CASE("a recorded walk normalises the sum as it was, and not rounded to 16 bits", "[ops]") {
  // In bf16 the numbers of the sum are one: 3.296875.
  Tensor x = cast(from_values<float>({-0.001f, 0.001f, -0.001f, 0.001f}, {1, 4}), Dtype::bf16),
         residual = full({1, 4}, 3.296875, Dtype::bf16), gain = full({4}, 1.0, Dtype::bf16);
  for (Tensor* one : {&x, &residual, &gain}) autograd::require_gradient(*one);
  const Tensor dy = cast(from_values<float>({1, 0, 0, 1}, {1, 4}), Dtype::bf16),
               y = residual_norm(x, {}, residual, gain, {}, {.eps = 1e-12});
  const auto gradient = [&](bool recorded, size_t of) {
    return to_vector<float>(
        autograd::grad({sum(y * dy)}, {x, gain}, {.retain_graph = true, .create_graph = recorded})[of]);
  };
  for (const size_t of : {size_t{0}, size_t{1}}) {
    const std::vector<float> plain = gradient(false, of), recorded = gradient(true, of);
    for (size_t j = 0; j < 4; ++j) CHECK(std::abs(recorded[j] - plain[j]) <= 0x1p-6f * std::abs(plain[j]));
  }
}

TEST_CASE("dropout drops the share it is told to and keeps the mean", "[ops]") {
  for (Device device : {cpu, reference}) {
    const Random random(1, device);
    const int64_t count = 20000;
    const double p = 0.3;
    const std::vector<double> y =
        to_vector<double>(dropout(full({count / 100, 100}, 1, Dtype::f32, device), random.site("a", p)));
    int64_t dropped = 0;
    for (double value : y) {
      if (value == 0) ++dropped;
      if (value != 0) CHECK(value == Approx(1 / (1 - p)));
    }
    // Six standard deviations of a binomial count.
    CHECK(std::abs(static_cast<double>(dropped) - p * count) < 6 * std::sqrt(p * (1 - p) * count));
  }
}

TEST_CASE("a mask depends on seed, step, first sample and site, and on nothing else", "[ops]") {
  const Tensor ones = full({8, 16}, 1);
  auto mask = [&](const Random& random, const char* name, const Tensor& x) {
    return to_vector<float>(dropout(x, random.site(name, 0.5)));
  };
  Random random(5), other_seed(6);
  random.set_step(3);
  other_seed.set_step(3);
  const std::vector<float> first = mask(random, "a", ones);
  CHECK(first == mask(random, "a", ones));
  CHECK(first != mask(random, "b", ones));
  CHECK(first != mask(other_seed, "a", ones));
  random.set_first_sample(4);
  const std::vector<float> lower = mask(random, "a", slice(ones, 0, 0, 4));
  CHECK(lower == std::vector<float>(first.begin() + 64, first.end()));
  random.set_first_sample(0);
  random.set_step(4);
  CHECK(first != mask(random, "a", ones));
}

TEST_CASE("a step that changes between forward and backward is an error, not another mask", "[ops]") {
  Random random(5);
  Tensor x = full({2, 4}, 1);
  autograd::require_gradient(x);
  const Tensor y = sum(dropout(x, random.site("a", 0.5)));
  random.set_step(1);
  CHECK_THROWS_WITH(autograd::backward(y),
                    "[dropout] the random state was changed by Random between forward and backward: the dropout mask "
                    "cannot be made again");
}

TEST_CASE("without dropout the tensor itself comes back", "[ops]") {
  const Tensor x = full({2, 4}, 1);
  CHECK(dropout(x, {}).storage() == x.storage());
}

TEST_CASE("a sample keeps its masks when the batch is split, in every op that drops", "[ops]") {
  const int64_t samples = 3, length = 5, width = 12;
  std::vector<float> numbers(static_cast<size_t>(samples * length * 3 * width));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = to_uniform(random_word(3, 1, 0, i)) - 0.5f;
  const Tensor qkv = from_values(numbers, {samples, length, 3 * width});
  Random random(5);
  auto run = [&](const Tensor& x) {
    const Tensor mixed = self_attention(x, 2, {.dropout = random.site("attention", 0.5)});
    const Tensor normed = residual_norm(mixed, {}, mixed, {}, {}, {.dropout = random.site("norm", 0.5)});
    return to_vector<float>(dropout(normed, random.site("dropout", 0.5)));
  };
  const std::vector<float> whole = run(qkv);
  random.set_first_sample(2);
  const std::vector<float> last = run(slice(qkv, 0, 2, 3));
  CHECK(last == std::vector<float>(whole.end() - length * width, whole.end()));
}
