// Hooks that put another tensor in a gradient's place, and walks that run inside a walk.
#include <catch2/catch.hpp>
#include <optional>

#include "autocast_helpers.h"
#include "cinta/autograd/mode.h"
#include "cinta/autograd/tape.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "cinta/optim/sgd.h"
#include "data_helpers.h"
#include "twin.h"

using namespace cinta;
using namespace cinta::autograd;
using namespace cinta::testing;

namespace {

Tensor leaf_of(const Shape& shape, float first) {
  std::vector<float> numbers(static_cast<size_t>(shape.numel()));
  for (float& number : numbers) number = first++;
  Tensor leaf = from_values(numbers, shape);
  return require_gradient(leaf);
}

/// x; its rule throws.
struct Refusing {
  static constexpr const char* name = "refusing";
  Tensor forward(const Tensor& x) { return affine(x, 1, 0); }
  void save(const Tensor&, const Tensor&) {}
  void backward(const Tensor&, Sinks) { throw ValueError("enough"); }
};

/// x; its rule runs something first.
struct Running {
  static constexpr const char* name = "running";
  Callback<void()> run;
  Tensor forward(const Tensor& x) { return affine(x, 1, 0); }
  void save(const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) {
    run();
    sinks[0].put(dy);
  }
};

}  // namespace

TEST_CASE("what a hook puts in a gradient's place is copied to where that was", "[autograd]") {
  const Tensor x = detach(leaf_of({4, 3}, 1)), factors = from_values(std::vector<float>{1, 3}, {1, 2});
  const auto gradient_after = [&](const LeafHook& hook, int walks, bool with_optimizer) {
    const Tensor w = leaf_of({2, 3}, 1);
    w.slot->hooks.push_back(hook);
    std::optional<optim::Sgd> optimizer;
    if (with_optimizer) optimizer.emplace(std::vector<optim::Parameter>{{"w", w}});
    for (int i = 0; i < walks; ++i) backward(sum(linear(x, w) * factors));
    return values(gradient(w));
  };
  const Tensor zero = full({2, 3}, 0);
  for (const bool with_optimizer : {false, true})
    for (const int walks : {1, 2, 3}) {
      const float n = static_cast<float>(walks);
      const auto rows = [n](float first, float second) {
        return std::vector<float>{22 * first * n,  26 * first * n,  30 * first * n,
                                  22 * second * n, 26 * second * n, 30 * second * n};
      };
      const auto turned = [](Tensor& g) { g = transpose(contiguous(transpose(g, 0, 1)), 0, 1); };
      const auto spread = [](Tensor& g) { g = expand(mean(g, {0}, true), g.shape()); };
      const auto of_itself = [](Tensor& g) { g = expand(slice(g, 0, 1, 2), g.shape()); };
      CHECK(gradient_after(turned, walks, with_optimizer) == rows(1, 3));
      CHECK(gradient_after(spread, walks, with_optimizer) == rows(2, 2));
      CHECK(gradient_after(of_itself, walks, with_optimizer) == rows(3, 3));
      CHECK(gradient_after([&](Tensor& g) { g = zero; }, walks, with_optimizer) == std::vector<float>(6));
      CHECK(values(zero) == std::vector<float>(6));
    }
}

TEST_CASE("a walk inside a walk leaves the outer one's sums alone", "[autograd]") {
  const Tensor a = leaf_of({2}, 1), b = leaf_of({2}, 3);
  std::vector<float> found;
  const auto gradient_with = [&](const Callback<void()>& inner) {
    clear_gradient(a);
    b.slot->hooks = {[&](Tensor&) {
      Scoped on(&Mode::recording, true);
      inner();
    }};
    const Tensor left = a * 3.0, right = b * 2.0;  // what b gets lands before what a gets
    backward(sum(left) + sum(right));
    return values(gradient(a));
  };
  CHECK(gradient_with([&] { backward(sum(a * 10.0)); }) == std::vector<float>{13, 13});
  CHECK(gradient_with([&] { found = values(grad({sum(a * 10.0)}, {a})[0]); }) == std::vector<float>{3, 3});
  CHECK(found == std::vector<float>{10, 10});
  CHECK(gradient_with([&] { CHECK_THROWS_AS(backward(a * 10.0), ShapeError); }) == std::vector<float>{3, 3});
}

TEST_CASE("a walk inside a walk may use its graph, and may not use it up", "[autograd]") {
  const Tensor a = leaf_of({2}, 1), b = leaf_of({2}, 3);
  const Tensor square = a * a, loss = sum(square) + sum(b * 2.0);
  std::string refusal;
  b.slot->hooks = {[&](Tensor&) {
    refusal = error_of<ValueError>([&] { backward(square, {.seeds = {full({2}, 1)}}); });
    backward(square, {.retain_graph = true, .seeds = {full({2}, 1)}});
  }};
  backward(loss);
  CHECK(refusal.find("retain_graph where a walk around this one has yet to come to mul") != refusal.npos);
  CHECK(values(gradient(a)) == std::vector<float>{4, 8});
}

TEST_CASE("a hook turns a gradient over in its own place, is recorded, and is refused without a trace", "[autograd]") {
  const Tensor w = leaf_of({3, 3}, 1), factors = detach(leaf_of({3, 3}, 1));
  const auto walk = [&](const LeafHook& hook, const WalkOptions& options = {}) {
    clear_gradient(w);
    w.slot->hooks = {hook};
    backward(sum(w * w * factors), options);
  };
  walk([](Tensor& g) { g = transpose(g, 0, 1); });
  CHECK(values(gradient(w)) == values(contiguous(transpose(factors * factors * 2.0, 0, 1))));
  walk([](Tensor& g) { g = g * 3.0; }, {.create_graph = true});
  CHECK(values(grad({sum(gradient(w))}, {w})[0]) == values(factors * 6.0));
  clear_gradient(w);
  CHECK_THROWS_AS(walk([](Tensor& g) { g = mean(g); }), ShapeError);
  CHECK_THROWS_AS(walk([](Tensor& g) { g = full({3, 3}, 1, Dtype::f32, reference); }), DeviceError);
  walk([](Tensor&) {});
  CHECK(values(gradient(w)) == values(factors * factors * 2.0));
}

TEST_CASE("a walk inside a walk that fails on its way ends the outer one", "[autograd]") {
  const Tensor a = leaf_of({2}, 1), b = leaf_of({2}, 3), c = leaf_of({2}, 5);
  c.slot->hooks = {[](Tensor&) { throw ValueError("enough"); }};
  b.slot->hooks = {[&](Tensor&) {
    Scoped on(&Mode::recording, true);
    const Tensor inner = a * 10.0, other = c * 1.0;
    CHECK_THROWS_AS(backward(sum(inner) + sum(other)), ValueError);
  }};
  const Tensor left = a * 3.0, right = b * 2.0, loss = sum(left) + sum(right);
  CHECK(error_of<ValueError>([&] { backward(loss); }).find("that does not fail") != std::string::npos);
  CHECK(!gradient(a));
}

TEST_CASE("a walk from one output of an op leaves the sum of the other to the outer one", "[autograd]") {
  std::vector<bool> came;
  const Tensor a = leaf_of({2}, 1), b = leaf_of({2}, 3);
  const std::vector<Tensor> y = apply(Twin{&came}, Where::current(), a);
  const Tensor right = b * 2.0, last = sum(right), first = sum(y[0]);  // recorded later, walked earlier
  std::vector<float> found;
  b.slot->hooks = {[&](Tensor&) {
    found = values(grad({y[1]}, {a}, {.retain_graph = true, .seeds = {full({2}, 1)}})[0]);
    CHECK(came == std::vector<bool>{false, true});
  }};
  backward(last + first);
  CHECK(found == std::vector<float>{3, 3});
  CHECK(came == std::vector<bool>{true, false});
  CHECK(values(gradient(a)) == std::vector<float>{1, 1});
}

TEST_CASE("grad() that fails inside a walk is no concern of the outer one", "[autograd]") {
  const Tensor a = leaf_of({2}, 1), b = leaf_of({2}, 3);
  b.slot->hooks = {[&](Tensor&) {
    Scoped on(&Mode::recording, true);
    Tensor c = leaf_of({2}, 5);
    const Tensor wrong = apply(Refusing{}, Where::current(), c);
    CHECK_THROWS_AS(grad({sum(wrong * a)}, {c}), ValueError);
  }};
  const Tensor left = a * 3.0, right = b * 2.0, loss = sum(left) + sum(right);
  backward(loss);
  CHECK(values(gradient(a)) == std::vector<float>{3, 3});
}

TEST_CASE("a walk inside grad() that asks for the same gradient is refused as what it is", "[autograd]") {
  const Tensor a = leaf_of({2}, 1);
  std::string refusal;
  const auto ask = [&] {
    const Scoped on(&Mode::recording, true);
    refusal = error_of<ValueError>([&] { grad({sum(a * 2.0)}, {a}); });
  };
  const Tensor y = apply(Running{ask}, Where::current(), a);
  CHECK(values(grad({sum(y)}, {a})[0]) == std::vector<float>{1, 1});
  CHECK(refusal.find("[grad] inputs that no other walk under way is to return the gradient of, given f32[2]@cpu") == 0);
}

TEST_CASE("a hook of a result is refused by the walk that meets it", "[autograd]") {
  const Tensor a = leaf_of({2}, 1), h = a * 3.0, y = sum(exp(h));
  h.slot->hooks = {[](Tensor&) {}};
  const std::string error = error_of<ValueError>([&] { backward(y); });
  CHECK(error.find("[backward] hooks of leaves alone (require_gradient), given one of the output of affine") == 0);
  CHECK(error.find("autograd_hooks.cpp:") != std::string::npos);
  h.slot->hooks.clear();
  backward(y);
  CHECK(gradient(a));
}
