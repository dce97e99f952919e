// Scales of narrow products from step to step: histories, skipped steps, evaluation, what a resumed run goes on with,
// infinities that stay visible.
#include <catch2/catch.hpp>
#include <cmath>

#include "autocast_helpers.h"
#include "cinta/autograd/tape.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "data_helpers.h"
#include "narrow_helpers.h"

using namespace cinta;
using namespace cinta::autograd;
using namespace cinta::testing;

TEST_CASE("delayed scales follow the steps before", "[fp8]") {
  // The scale, then the history.
  const auto run = [](const char* recipe, const Numbers& magnitudes, const Numbers& factors = {}) {
    const Autocast types = types_of(recipe);
    const Tensor weight = from_values(Numbers(16 * 16, 1), {16, 16});
    const auto input = [](float magnitude) { return from_values(Numbers(16 * 16, magnitude), {16, 16}); };
    for (size_t i = 0; i < magnitudes.size(); ++i) {
      const AutocastScope scope(types);
      linear(input(magnitudes[i]), weight);
      types.products->update(i < factors.size() ? from_values(Numbers{factors[i]}, {1}) : Tensor());
    }
    NarrowProducts& products = *types.products;
    Numbers out{
        to_vector<float>(products.narrow(*products.layer(weight), NarrowProducts::input, input(1), false).scales)[0]};
    for (const auto& [name, state] : products.state())
      if (name == "fp8.linear.input")
        for (float magnitude : to_vector<float>(state)) out.push_back(magnitude);
    return out;
  };
  CHECK(run("delayed,history=3", {2, 8, 4}) == Numbers{56, 4, 8, 2});
  CHECK(run("delayed,history=3", {8, 4, 2, 1}) == Numbers{112, 1, 2, 4});
  CHECK(run("delayed,history=3,amax=recent", {2, 8, 4}) == Numbers{112, 4, 8, 2});
  CHECK(run("delayed,history=1,margin=1", {2, 8, 4}) == Numbers{56, 4});
  // No magnitude, and one that is no number, leave the scale alone; without any before, the tensor's own counts.
  CHECK(run("delayed,history=2", {7, 0, INFINITY, NAN}) == Numbers{64, 7, 0});
  CHECK(run("delayed,history=2", {0, INFINITY}) == Numbers{448, 0, 0});
  // A skipped step leaves nothing behind.
  CHECK(run("delayed,history=3", {2, 1000, 4}, {1, 0, 1}) == Numbers{112, 4, 2, 0});
}

TEST_CASE("evaluation moves no scale and is not counted", "[fp8]") {
  const Autocast types = types_of("delayed,history=2");
  const Tensor x = from_values(spread(16 * 16, 1, 3), {16, 16});
  Tensor weight = leaf(spread(16 * 16, 2, 1), {16, 16});
  {
    const NoGrad off;
    const AutocastScope scope(types);
    linear(x, weight);
  }
  types.products->update();
  for (const auto& [name, state] : types.products->state())
    for (double value : to_vector<double>(state)) CHECK(value == 0);
  const AutocastScope scope(types);
  {
    const NoGrad off;
    linear(x, weight);  // in the same step: the weight's narrow form is there, and has still to be heard of
  }
  linear(x, weight);
  types.products->update();
  const auto counts = types.products->take_counts();
  REQUIRE(counts.size() == 1);
  CHECK(counts[0].layer == "linear");
  CHECK(counts[0].of[NarrowProducts::input].elements == 256);
  CHECK(counts[0].of[NarrowProducts::weight].elements == 256);
  CHECK(counts[0].of[NarrowProducts::gradient].elements == 0);
  CHECK(types.products->take_counts()[0].of[NarrowProducts::input].elements == 0);
}

TEST_CASE("what was no number does not become one by saturation", "[fp8]") {
  for (const char* recipe : {"current", "delayed", "block", "none"}) {
    INFO(recipe);
    const Autocast types = types_of(recipe);
    const AutocastScope scope(types);
    const Tensor x = from_values(Numbers(256 * 16, 1), {256, 16});
    for (float bad : {INFINITY, NAN}) {
      Tensor weight = leaf(Numbers(16 * 16, 1), {16, 16});
      Numbers dy(256 * 16, 1);
      dy[17] = -bad;
      const Tensor y = linear(x, weight);
      backward(y, {.seeds = {cast(from_values(dy, {256, 16}), Dtype::bf16)}});
      CHECK(std::isnan(item(sum(gradient(weight)))));
      types.products->update();
    }
  }
}

TEST_CASE("scales go on where they were after loading", "[fp8]") {
  const Tensor x = from_values(spread(16 * 16, 1, 3), {16, 16});
  Tensor weight = leaf(spread(16 * 16, 2, 1), {16, 16}), other = leaf(spread(16 * 16, 3, 1), {16, 16});
  const auto step = [&](const Autocast& types, double factor) {
    const AutocastScope scope(types);
    const NameScope place("block");
    const Tensor y = linear(linear(affine(x, factor, 0), weight), other);
    backward(sum(y));
    types.products->update();
    return values(y);
  };
  const Autocast types = types_of("delayed,history=3"), resumed = types_of("delayed,history=3"),
                 longer = types_of("delayed,history=5"), current = types_of("current");
  step(types, 1);
  step(types, 4);
  std::vector<std::pair<std::string, Tensor>> state;
  for (const auto& [name, tensor] : types.products->state()) {
    const Tensor copy = empty_like(tensor);
    copy_bytes(copy, tensor);
    state.emplace_back(name, copy);
  }
  CHECK(state.size() == 8);
  CHECK(state[4].first == "fp8.block#2.counts");
  resumed.products->load_state(state);
  longer.products->load_state(state);
  current.products->load_state(state);
  CHECK(resumed.products->state().size() == 8);  // kept for layers that have not run yet
  const Numbers uninterrupted = step(types, 2);
  CHECK(step(resumed, 2) == uninterrupted);
  CHECK(step(longer, 2) == uninterrupted);
  CHECK(step(types, 1) == step(resumed, 1));
  CHECK(step(current, 2) == step(types_of("current"), 2));
  const auto refused = [&](const std::vector<std::pair<std::string, Tensor>>& given, const char* part) {
    CHECK_THAT(error_of<ValueError>([&] { resumed.products->load_state(given); }), Catch::Contains(part));
  };
  const std::pair<std::string, Tensor> sound{"fp8.block.input", from_values(Numbers{1}, {1})};
  refused({{"fp8.block.input", from_values(Numbers{1, -1}, {2})}}, "[fp8] state fp8.block.input is a history");
  refused({{"fp8.block.input", from_values(Numbers{NAN}, {1})}}, "is a history");
  refused({{"fp8.block.counts", sound.second}}, "is a history");
  refused({sound, sound}, "state is given once: fp8.block.input");
}

TEST_CASE("a state of another recipe gives its magnitudes, not its scales", "[fp8]") {
  const Tensor weight = from_values(Numbers(16 * 16, 1), {16, 16}), x = from_values(Numbers(16 * 16, 7), {16, 16});
  const auto input_scale = [&](const char* recipe) {
    const Autocast types = types_of(recipe);
    types.products->load_state({{"fp8.linear.input", from_values(Numbers{2, 4, 8}, {3})}});
    return to_vector<float>(
        types.products->narrow(*types.products->layer(weight), NarrowProducts::input, x, false).scales)[0];
  };
  CHECK(input_scale("delayed,history=3") == 56);
  CHECK(input_scale("delayed,history=2") == 112);
  CHECK(input_scale("delayed,history=9,margin=1") == 28);
  CHECK(input_scale("delayed,history=3,amax=recent") == 224);
  CHECK(input_scale("delayed,forward=e4m3fnuz,gradient=e5m2fnuz") == 30);
  CHECK(input_scale("current") == 64);
}

TEST_CASE("a frozen weight is heard of in every step, resumed or not", "[fp8]") {
  const Tensor weight = from_values(spread(256, 1, 1), {16, 16});
  Tensor x = leaf(spread(256, 2, 1), {16, 16});
  const auto step = [&](const Autocast& types) {
    const AutocastScope scope(types);
    backward(sum(linear(x, weight)));
    types.products->update();
  };
  const Autocast types = types_of("delayed,history=3"), resumed = types_of("delayed,history=3");
  step(types);
  std::vector<std::pair<std::string, Tensor>> saved;
  for (const auto& [name, tensor] : types.products->state()) {
    const Tensor copy = empty_like(tensor);
    copy_bytes(copy, tensor);
    saved.emplace_back(name, copy);
  }
  resumed.products->load_state(saved);
  step(types);
  step(resumed);
  const auto one = types.products->state(), other = resumed.products->state();
  REQUIRE(one.size() == 4);
  REQUIRE(other.size() == 4);
  for (size_t i = 0; i < one.size(); ++i) {
    CHECK(one[i].first == other[i].first);
    CHECK(to_vector<double>(one[i].second) == to_vector<double>(other[i].second));
  }
}

TEST_CASE("a graph outlives the scales it was made with", "[fp8]") {
  Tensor weight = leaf(spread(256, 1, 1), {16, 16});
  const Tensor x = from_values(spread(256, 2, 1), {16, 16});
  const Autocast types = types_of("delayed");
  const AutocastScope scope(types);
  const Tensor y = linear(x, weight);
  types.products->load_state({});
  backward(sum(y));
  CHECK(std::isfinite(item(sum(gradient(weight)))));
  CHECK_THAT(error_of<ValueError>([&] { grad({sum(linear(x, weight))}, {weight}, {.create_graph = true}); }),
             Catch::Contains("gradients of gradients are taken outside of fp8"));
}
