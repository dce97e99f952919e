// The tape: what is recorded, in which order gradients add up, what a walk uses up, and what an error leaves behind.
#include <catch2/catch.hpp>

#include "cinta/autograd/function.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/context.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/normalize.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "data_helpers.h"
#include "twin.h"

using namespace cinta;
using namespace cinta::autograd;
using cinta::testing::error_of;
using cinta::testing::Twin;

namespace {

Tensor leaf(const std::vector<float>& values) {
  Tensor out = from_values(values, {static_cast<int64_t>(values.size())});
  return require_gradient(out);
}
std::vector<float> values(const Tensor& tensor) { return to_vector<float>(tensor); }

/// x, once in forward; backward fails when told to.
struct Fragile {
  static constexpr const char* name = "fragile";
  const bool* fail;
  Tensor forward(const Tensor& x) { return contiguous(affine(x, 1, 0)); }
  void save(const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) {
    if (*fail) throw ValueError("[fragile] as told");
    sinks[0].put(dy);
  }
};

}  // namespace

TEST_CASE("gradients of a small graph", "[autograd]") {
  const Tensor x = leaf({2, -3}), w = leaf({5, 7});
  backward(sum(x * w + x));
  CHECK(values(gradient(x)) == std::vector<float>{6, 8});
  CHECK(values(gradient(w)) == std::vector<float>{2, -3});
}

TEST_CASE("backward adds to a leaf's gradient until it is cleared", "[autograd]") {
  const Tensor x = leaf({2});
  CHECK(!gradient(x));
  backward(x * x);
  backward(x * 10.0);
  CHECK(values(gradient(x)) == std::vector<float>{14});
  clear_gradient(x);
  CHECK(!gradient(x));
  backward(x * 10.0);
  CHECK(values(gradient(x)) == std::vector<float>{10});
}

TEST_CASE("contributions of one walk are summed first, last use first, then added once", "[autograd]") {
  // In f32 100000000 + 4 is 100000000: only (4 + 4) is seen beside it.
  const Tensor x = leaf({1});
  SECTION("before the old gradient") {
    backward(x * 1e8);
    backward(x * 4.0 + x * 4.0);
    CHECK(values(gradient(x)) == std::vector<float>{100000008.0f});
  }
  SECTION("the last recorded use comes first") {
    const Tensor first = x * 1e8, second = x * 4.0, third = x * 4.0;
    backward(first + (second + third));
    CHECK(values(gradient(x)) == std::vector<float>{100000008.0f});
  }
  SECTION("by ops that add in place, too") {
    Tensor w = full({1, 1}, 1);
    require_gradient(w);
    const auto into = [&](float by) { return matmul(full({1, 1}, by), w); };
    const Tensor first = into(1e8f), second = into(4), third = into(4);
    backward(sum(first + (second + third)));
    CHECK(values(gradient(w)) == std::vector<float>{100000008.0f});
    const Tensor fourth = into(4), fifth = into(4);
    backward(sum(fourth + fifth));
    CHECK(values(gradient(w)) == std::vector<float>{100000016.0f});
  }
  SECTION("whatever the shape of the graph above") {
    const Tensor first = x * 4.0, second = x * 4.0, third = x * 1e8;
    backward(first + (second + third));
    CHECK(values(gradient(x)) == std::vector<float>{100000000.0f});
    clear_gradient(x);
    const Tensor one = x * 4.0, two = x * 4.0, three = x * 1e8;
    backward((three + one) + two);
    CHECK(values(gradient(x)) == std::vector<float>{100000000.0f});
  }
}

TEST_CASE("a gradient that several hold is not added to in place", "[autograd]") {
  const Tensor x = leaf({1}), y = leaf({1});
  const Tensor seed = from_values(std::vector<float>{3}, {1});
  const Tensor sum = x + y;  // hands one tensor to both
  backward(sum + x, {.seeds = {seed}});
  CHECK(values(gradient(x)) == std::vector<float>{6});
  CHECK(values(gradient(y)) == std::vector<float>{3});
  CHECK(values(seed) == std::vector<float>{3});
}

TEST_CASE("a hook sees the whole gradient, once a walk", "[autograd]") {
  const Tensor x = leaf({2}), unused = leaf({1});
  std::vector<float> seen;
  x.slot->hooks.push_back([&](Tensor& gradient) { seen.push_back(values(gradient)[0]); });
  unused.slot->hooks.push_back([&](Tensor&) { seen.push_back(-1); });
  backward(x * x + x * 10.0 + tanh(x * 0.0));
  CHECK(seen == std::vector<float>{14});
  backward(x * 1.0);
  CHECK(seen == std::vector<float>{14, 15});
  grad({x * x}, {x});
  CHECK(seen.size() == 2);
  x.slot->hooks = {[](Tensor& gradient) { gradient = concat({gradient, gradient}, 0); }};
  CHECK(error_of<ShapeError>([&] { backward(x * 2.0); }).find("f32[1] became f32[2]") != std::string::npos);
}

TEST_CASE("a walk uses the graph up unless it is told to keep it", "[autograd]") {
  const Tensor x = leaf({3}), h = x * x, y = exp(h * 0.1);
  backward(y, {.retain_graph = true});
  const std::vector<float> once = values(gradient(x));
  clear_gradient(x);
  backward(y);
  CHECK(values(gradient(x)) == once);
  const std::string again = error_of<ValueError>([&] { backward(y); });
  CHECK(again.find("exp") != std::string::npos);
  CHECK(again.find("retain_graph") != std::string::npos);
  CHECK(again.find("autograd.cpp") != std::string::npos);
  const std::string below = error_of<ValueError>([&] { backward(h * 2.0); });
  CHECK(below.find("multiply") != std::string::npos);
  CHECK(values(gradient(x)) == once);
}

TEST_CASE("gradients of chosen tensors, inside the graph too", "[autograd]") {
  const Tensor x = leaf({3}), other = leaf({1}), h = x * x, y = h * h * other;
  const std::vector<Tensor> found = grad({y}, {h, x, other, y}, {.retain_graph = true});
  CHECK(values(found[0]) == std::vector<float>{18});
  CHECK(values(found[1]) == std::vector<float>{108});
  CHECK(values(found[2]) == std::vector<float>{81});
  CHECK(values(found[3]) == std::vector<float>{1});
  CHECK(!gradient(x));
  CHECK(!grad({h}, {other}, {.retain_graph = true})[0]);
  // Two outputs, weighted.
  const Tensor two = from_values(std::vector<float>{2}, {1}), five = from_values(std::vector<float>{5}, {1});
  CHECK(values(grad({h, y}, {x}, {.retain_graph = true, .seeds = {two, five}})[0]) == std::vector<float>{552});
  CHECK(values(grad({h, h}, {x}, {.seeds = {two, five}})[0]) == std::vector<float>{42});
}

TEST_CASE("grad leaves what it does not walk through", "[autograd]") {
  const Tensor x = leaf({3}), h = x * x, y = h * h;
  CHECK(values(grad({y}, {h})[0]) == std::vector<float>{18});
  backward(h);  // the square was not part of that walk
  CHECK(values(gradient(x)) == std::vector<float>{6});
}

TEST_CASE("what is asked of the tape wrongly is refused with the place", "[autograd]") {
  const Tensor x = leaf({1, 2}), plain = from_values(std::vector<float>{1}, {1});
  auto names_place = [](const std::string& error, const char* part) {
    INFO(error);
    CHECK(error.find("autograd.cpp") != std::string::npos);
    CHECK(error.find(part) != std::string::npos);
  };
  names_place(error_of<ShapeError>([&] { backward(x * 2.0); }), "one element, or a seed: f32[2]@cpu");
  names_place(error_of<DtypeError>([&] { backward(x * 2.0, {.seeds = {cast(detach(x), Dtype::f64)}}); }),
              "a seed of the output's type: f32[2]@cpu, given f64[2]@cpu");
  names_place(error_of<ShapeError>([&] { backward(x * 2.0, {.seeds = {plain}}); }), "f32[1]@cpu");
  names_place(error_of<ShapeError>([&] { grad({x * 2.0, x * 3.0}, {x}, {.seeds = {x}}); }), "2 outputs, given 1");
  names_place(error_of<ValueError>([&] { backward(plain); }),
              "[backward] an output that is on the tape, given one that is not: f32[1]@cpu");
  names_place(error_of<ValueError>([&] { grad({plain}, {x}); }), "[grad] an output that is on the tape, given one");
  names_place(error_of<ValueError>([&] {
                grad({sum(x)}, {x, plain});
              }),
              "inputs that are on the tape, given as input 1 one that is not: f32[1]@cpu");
  names_place(error_of<ValueError>([&] { grad({sum(x)}, {x, x}); }), "each input is given once");
  Tensor whole = from_values(std::vector<int64_t>{1}, {1}), result = x * 2.0;
  names_place(error_of<DtypeError>([&] { require_gradient(whole); }), "i64[1]@cpu");
  names_place(error_of<ValueError>([&] { require_gradient(result); }), "not the result of an op");
  // None of these left a trace.
  CHECK(values(grad({sum(x * x)}, {x})[0]) == std::vector<float>{2, 4});
}

TEST_CASE("no_grad and detach leave the tape", "[autograd]") {
  const Tensor x = leaf({3});
  {
    NoGrad off;
    CHECK(!tracked(x * x));
  }
  CHECK(tracked(x * x));
  CHECK(!tracked(detach(x)));
  backward(x * detach(x * x));
  CHECK(values(gradient(x)) == std::vector<float>{9});
}

TEST_CASE("a saved tensor overwritten in place is found out, with both ops", "[autograd]") {
  const Tensor x = leaf({3});
  Tensor h = x * 2.0;
  const Where here = Where::current();
  const Tensor y = h * h;
  {
    NoGrad off;
    add_(h, h);
  }
  CHECK(error_of<ValueError>([&] { backward(y); }) ==
        join("[multiply] a tensor saved for backward, f32[1]@cpu, was overwritten in place by add_, autograd.cpp:",
             here.line() + 1));
  SECTION("by copied bytes too") {
    const Tensor g = x * 2.0, z = g * g;
    copy_bytes(g, x);
    CHECK(error_of<ValueError>([&] { backward(z); }).find("by copy_bytes") != std::string::npos);
  }
  SECTION("a view of it too") {
    const Tensor wide = leaf({1, 2, 3, 4}), g = wide * 2.0, z = sum(g * g);
    NoGrad off;
    fill_(slice(g, 0, 1, 2), 0);
    CHECK(error_of<ValueError>([&] { backward(z); }).find("by fill_") != std::string::npos);
  }
  SECTION("but not what nobody saved") {
    const Tensor g = x * 2.0, z = g + g;
    {
      NoGrad off;
      fill_(g, 100);
    }
    backward(z);
    CHECK(values(gradient(x)) == std::vector<float>{4});
  }
  SECTION("writing to a tracked tensor while recording is refused") {
    CHECK(error_of<ValueError>([&] { fill_(x, 1); }) != "no error");
  }
}

TEST_CASE("an op with several outputs gets what came for each", "[autograd]") {
  const Tensor x = leaf({2});
  std::vector<bool> came;
  SECTION("both") {
    const std::vector<Tensor> y = apply(Twin{&came}, Where::current(), x);
    backward(y[0] * 5.0 + y[1]);
    CHECK(came == std::vector<bool>{true, true});
    CHECK(values(gradient(x)) == std::vector<float>{8});
  }
  SECTION("one unused") {
    const std::vector<Tensor> y = apply(Twin{&came}, Where::current(), x);
    backward(y[1] * 5.0);
    CHECK(came == std::vector<bool>{false, true});
    CHECK(values(gradient(x)) == std::vector<float>{15});
  }
  SECTION("one dropped, and the tensor that is left outlives the list") {
    Tensor kept;
    kept = apply(Twin{&came}, Where::current(), x)[1];
    backward(kept);
    CHECK(came == std::vector<bool>{false, true});
    CHECK(values(gradient(x)) == std::vector<float>{3});
  }
  SECTION("all dropped") {
    const std::weak_ptr<Node> node = apply(Twin{&came}, Where::current(), x)[0].slot->producer;
    CHECK(node.expired());
  }
}

TEST_CASE("a chain of 200,000 ops is built, walked and torn down without recursion", "[autograd]") {
  constexpr int length = 200'000;
  const Tensor x = leaf({1});
  auto build = [&] {
    Tensor y = x;
    for (int i = 0; i < length; ++i) y = y * y;  // saves its input, so tensors hold slots too
    return y;
  };
  const int64_t before = memory_statistics(cpu).live_total;
  SECTION("dropped unused") {
    Tensor y = build();
    CHECK(memory_statistics(cpu).live_total >= before + 512LL * length);
    y = {};
    CHECK(memory_statistics(cpu).live_total == before);
  }
  SECTION("walked") {
    backward(build());
    CHECK(tracked(x));
    CHECK(gradient(x));
  }
}

TEST_CASE("memory falls while backward passes", "[autograd]") {
  constexpr int64_t width = 1 << 16, bytes = 4 * width, layers = 20;
  Tensor x = zeros({width});
  require_gradient(x);
  clear_gradient(x);
  Tensor y = x;
  const int64_t before = memory_statistics(cpu).live_total;
  std::vector<int64_t> live;
  struct Watch : Observer {
    std::vector<int64_t>* live;
    void forward(const char*, Where, std::span<const Tensor>) override {}
    void backward(const Node&, std::span<const Tensor>) override { live->push_back(memory_statistics(cpu).live_total); }
  } watch;
  watch.live = &live;
  for (int64_t i = 0; i < layers; ++i) y = tanh(y);
  CHECK(memory_statistics(cpu).live_total - before >= layers * bytes);
  {
    const Scoped observer(&Mode::observer, static_cast<Observer*>(&watch));
    backward(y, {.seeds = {zeros({width})}});
  }
  REQUIRE(live.size() == layers);
  for (size_t i = 2; i < live.size(); ++i) CHECK(live[i] == live[i - 1] - bytes);  // the root is still held
  CHECK(live.back() - before <= 5 * bytes);  // the root, the seed, two gradients, what the op saved
  CHECK(memory_statistics(cpu).live_total - before <= 2 * bytes);  // the root, the leaf's gradient
}

TEST_CASE("an error inside backward leaves a tape that works", "[autograd]") {
  const Tensor x = leaf({2}), w = leaf({3});
  bool fail = true;
  const Tensor y = w * apply(Fragile{&fail}, Where::current(), x * w) + x;
  CHECK(error_of<ValueError>([&] { backward(y, {.retain_graph = true}); }) == "[fragile] as told");
  CHECK(mode().recording);
  CHECK(!mode().keeper);
  for (const Tensor& tensor : {x, w, y}) {
    CHECK(tensor.slot->pending == 0);
    CHECK(!tensor.slot->incoming);
    clear_gradient(tensor);
  }
  fail = false;
  backward(y);
  CHECK(values(gradient(x)) == std::vector<float>{10});
  CHECK(values(gradient(w)) == std::vector<float>{12});
  SECTION("in grad too") {
    fail = true;
    const Tensor z = apply(Fragile{&fail}, Where::current(), x * w);
    CHECK(error_of<ValueError>([&] { grad({z}, {x, w}); }) == "[fragile] as told");
    CHECK(values(grad({x * w}, {x, w})[0]) == std::vector<float>{3});
  }
}

TEST_CASE("graphs that share leaves are walked on their own", "[autograd]") {
  const Tensor w = leaf({3}), y = w * w, z = exp(w * 0.0);
  backward(y);
  backward(z * 5.0 + w);
  CHECK(values(gradient(w)) == std::vector<float>{7});
}

TEST_CASE("a taped gradient lies in memory of its own", "[autograd]") {
  const Tensor x = leaf({1, 2, 3}), y = leaf({4, 5, 6}), seed = from_values<float>({1, 1, 1}, {3});
  const Tensor both = x + y, weights = from_values<float>({1, 2, 3}, {3});
  backward(both, {.create_graph = true, .seeds = {seed}});  // one gradient arrives at both leaves, and is the seed
  backward(sum(x * weights));
  CHECK(values(gradient(x)) == std::vector<float>{2, 3, 4});
  CHECK(values(gradient(y)) == std::vector<float>{1, 1, 1});
  CHECK(values(seed) == std::vector<float>{1, 1, 1});
  const Tensor z = leaf({1, 2, 3});
  backward(sum(z), {.create_graph = true});  // a gradient of one number, repeated
  backward(sum(z * weights));
  CHECK(values(gradient(z)) == std::vector<float>{2, 3, 4});
}

TEST_CASE("a gradient that a later walk adds to is no longer what was saved", "[autograd]") {
  const Tensor x = leaf({1, 2, 3});
  backward(sum(x * x), {.create_graph = true});
  const Tensor penalty = sum(gradient(x) * gradient(x));
  backward(sum(x));
  CHECK(error_of<ValueError>([&] { backward(penalty); }).find("overwritten in place by backward") != std::string::npos);
  clear_gradient(x);  // it is on a tape that x is on, and would keep both alive
}

TEST_CASE("a taped gradient after a cleared one has the tape of its own walk", "[autograd]") {
  const Tensor x = leaf({1, 2, 3});
  for (bool taped_before : {true, false}) {
    backward(sum(x * x * x), {.create_graph = taped_before});
    clear_gradient(x);
    backward(sum(x * x), {.create_graph = true});  // 2x, so that the sum of squares below has the gradient 8x
    const Tensor g = gradient(x);
    CHECK(values(grad({sum(g * g)}, {x})[0]) == std::vector<float>{8, 16, 24});
    clear_gradient(x);
  }
}

TEST_CASE("a walk that fails midway leaves no half-written gradient", "[autograd]") {
  Tensor weight = from_values<float>({1, 2, 3, 4}, {2, 2}), above = from_values<float>({1, 2, 3, 4}, {2, 2}),
         bias = leaf({5, 6});
  const Tensor x = full({1, 2}, 1.0);
  require_gradient(weight);
  require_gradient(above);
  // The norm takes the places of its operands' gradients before it finds that its mask cannot be made again.
  Random random(3);
  const Tensor h = linear(x, weight), y = residual_norm(h, bias, h, {}, {}, {.dropout = random.site("drop", 0.5)});
  const Tensor loss = sum(linear(y, above));
  random.set_step(1);
  CHECK_THROWS_AS(backward(loss), ValueError);
  for (const Tensor* leaf : {&bias, &weight, &above}) CHECK(!gradient(*leaf));
}
