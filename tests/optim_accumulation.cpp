// Accumulated gradients equal those of one big batch, also when micro-batches have unequal numbers of items.
#include <catch2/catch.hpp>

#include "cinta/autograd/tape.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "cinta/optim/accumulation.h"
#include "cinta/optim/adamw.h"
#include "optim_helpers.h"

using namespace cinta;
using namespace cinta::testing;
using namespace cinta::optim;

namespace {

constexpr int64_t inputs = 6, outputs = 4;

/// A linear model trained for two steps on `samples` rows, each step as micro-batches of the given numbers of rows;
/// every row counts with its weight (how many of its tokens are real). Returns weight and bias.
std::vector<double> train(const std::vector<int64_t>& sizes, const std::vector<int64_t>& tokens, Dtype dtype) {
  const auto samples = static_cast<int64_t>(tokens.size());
  const auto draw = [](double phase) { return [phase](double i) { return std::sin(phase + 1.7 * i * i); }; };
  Tensor weight = leaf(sequence(outputs * inputs, draw(1)), {outputs, inputs}, dtype);
  Tensor bias = leaf(sequence(outputs, draw(2)), {outputs}, dtype);
  const Tensor x = make(sequence(samples * inputs, draw(3)), {samples, inputs}, dtype, reference);
  const Tensor y = make(sequence(samples * outputs, draw(4)), {samples, outputs}, dtype, reference);
  const Tensor count = make({tokens.begin(), tokens.end()}, {samples, 1}, dtype, reference);
  AdamW optimizer({{"weight", weight}, {"bias", bias, false}}, {.rate = 0.1});
  std::vector<int64_t> items;
  for (int64_t begin = 0; const int64_t size : sizes) {
    items.push_back(0);
    for (int64_t i = begin; i < begin + size; ++i) items.back() += tokens[static_cast<size_t>(i)];
    begin += size;
  }
  const Tensor seed = accumulation_seed(items, dtype, reference);
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_gradients();
    for (int64_t begin = 0; const int64_t size : sizes) {
      const auto rows = [&](const Tensor& all) { return slice(all, 0, begin, begin + size); };
      const Tensor loss = sum(multiply(mse(linear(rows(x), weight, bias), rows(y), Reduction::none), rows(count)));
      autograd::backward(loss, {.seeds = {seed}});
      begin += size;
    }
    optimizer.step({.max_norm = 10});
  }
  auto out = to_vector<double>(weight);
  for (const double value : to_vector<double>(bias)) out.push_back(value);
  return out;
}

void compare(const std::vector<int64_t>& sizes, const std::vector<int64_t>& tokens) {
  const auto samples = static_cast<int64_t>(tokens.size());
  for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
    const auto parts = train(sizes, tokens, dtype), whole = train({samples}, tokens, dtype);
    for (size_t i = 0; i < whole.size(); ++i) CHECK(parts[i] == Approx(whole[i]).epsilon(1e-6).margin(1e-7));
  }
}

}  // namespace

TEST_CASE("micro-batches add up to one batch", "[optim]") {
  const std::vector<int64_t> ones(64, 1);
  SECTION("equal") { compare({16, 16, 16, 16}, ones); }
  SECTION("uneven") { compare({17, 16, 15, 16}, ones); }
  SECTION("a partial window at the end of the data") { compare({16, 5}, std::vector<int64_t>(21, 1)); }
  SECTION("weighted by tokens, one micro-batch with none") {
    std::vector<int64_t> tokens;
    for (int64_t i = 0; i < 64; ++i) tokens.push_back(i >= 32 && i < 48 ? 0 : 1 + i * i % 7);
    compare({17, 15, 16, 16}, tokens);
  }
  SECTION("a mean of means would be another number") {
    const std::vector<int64_t> tokens{1, 1, 1, 9};
    const auto right = train({3, 1}, tokens, Dtype::f64), unweighted = train({3, 1}, {1, 1, 1, 1}, Dtype::f64);
    CHECK(std::abs(right[0] - unweighted[0]) > 1e-4);
  }
}

TEST_CASE("a step without items has gradient zero", "[optim]") {
  CHECK(item(accumulation_seed(std::vector<int64_t>{0, 0})) == 0);
  const auto after = train({2, 2}, {0, 0, 0, 0}, Dtype::f64);
  for (const double value : after) CHECK(std::isfinite(value));
  CHECK(after.back() == std::sin(2 + 1.7 * 9));  // no gradient, no decay: the bias stays
}

TEST_CASE("the seed is one over the items of all micro-batches", "[optim]") {
  const Tensor seed = accumulation_seed(std::vector<int64_t>{3, 0, 5}, Dtype::f64, reference);
  CHECK(item(seed) == 0.125);
  CHECK(seed.rank() == 0);
  CHECK_THROWS_AS(accumulation_seed({}), ValueError);
  CHECK_THROWS_AS(accumulation_seed(std::vector<int64_t>{3, -1}), ValueError);
  CHECK_THROWS_AS(accumulation_seed(std::vector<int64_t>{INT64_MAX, 1}), ValueError);
}
