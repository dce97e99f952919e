// Optimizers around their sweeps: flat units, gradients, tied, frozen and unused parameters, clipping, skipped steps,
// bad input.
#include <array>
#include <catch2/catch.hpp>
#include <limits>

#include "cinta/autograd/mode.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/context.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/reduce.h"
#include "cinta/optim/adamw.h"
#include "cinta/optim/schedule.h"
#include "cinta/optim/sgd.h"
#include "optim_helpers.h"

using namespace cinta;
using namespace cinta::testing;
using namespace cinta::optim;
using Catch::Matchers::Contains;

namespace {
const std::vector<double> three{1, -2, 3};
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
}  // namespace

TEST_CASE("a unit moves values and gradients into flat buffers and every handle follows", "[optim]") {
  const Device device = GENERATE(reference, cpu);
  Tensor weight = leaf(sequence(70, [](double i) { return i; }), {7, 10}, Dtype::f32, device);
  Tensor bias = leaf(three, {3}, Dtype::f32, device);
  const Tensor copy_of_handle = weight;
  set_gradient(weight, sequence(70, [](double i) { return -i; }));
  std::vector<Unit> units = make_units({{"weight", weight}, {"bias", bias}});
  REQUIRE(units.size() == 1);
  REQUIRE(units[0].groups().size() == 1);
  const Group& group = units[0].groups()[0];
  CHECK(group.ranges[0].begin == 0);
  CHECK(group.ranges[1].begin == 2 * alignment);
  CHECK(group.length() == 3 * alignment);
  const auto flat = to_vector<float>(group.weights);
  for (size_t i = 0; i < flat.size(); ++i) {
    const double expected = i < 70 ? static_cast<double>(i) : i >= 128 && i < 131 ? three[i - 128] : 0.0;
    CHECK(flat[i] == expected);
  }
  CHECK(copy_of_handle.view().data == group.weights.view().data);
  CHECK(to_vector<double>(copy_of_handle) == sequence(70, [](double i) { return i; }));
  CHECK(to_vector<double>(autograd::gradient(weight)) == sequence(70, [](double i) { return -i; }));
  CHECK(to_vector<float>(group.gradients->flat())[69] == -69);

  // The tape writes straight into the flat gradients, and writing one weight does not mark its neighbour.
  autograd::clear_gradient(weight);
  autograd::backward(sum(multiply(weight, weight)));
  CHECK(to_vector<float>(group.gradients->flat())[69] == 138);
  const uint32_t version = bias.storage()->version();
  weight.storage()->mark_written("a test");
  CHECK(bias.storage()->version() == version);
}

TEST_CASE("units follow blocks, types and who is trained; a tied weight lies once", "[optim]") {
  Tensor a = leaf(three, {3}), b = leaf(three, {3}, Dtype::f32), frozen = make(three, {3}, Dtype::f32, reference);
  const Tensor tied = a;
  const auto units = make_units({{"a", a, true, 1, "first"},
                                 {"b", b, true, 1, "second"},
                                 {"frozen", frozen, true, 1, "second"},
                                 {"tied", tied, true, 1, "second"}});
  REQUIRE(units.size() == 2);
  REQUIRE(units[0].groups().size() == 1);
  REQUIRE(units[1].groups().size() == 2);
  size_t ranges = 0;
  for (const Group& group : units[1].groups()) {
    ranges += group.ranges.size();
    CHECK(group.trained == (group.ranges[0].parameter.name == "b"));
    CHECK(bool(group.gradients) == group.trained);
    CHECK(group.state.empty());
  }
  CHECK(ranges == 2);
  CHECK(to_vector<double>(frozen) == three);
}

TEST_CASE("memory is counted by what it is for", "[optim]") {
  Context rank;
  ContextScope scope(rank);
  Tensor weight = leaf(std::vector<double>(1024, 1.0), {1024}, Dtype::f32, cpu);
  Tensor frozen = make(std::vector<double>(1024, 1.0), {1024}, Dtype::f32, cpu);
  const AdamW optimizer({{"weight", weight}, {"frozen", frozen}});
  const auto live = memory_statistics(cpu).live;
  CHECK(live[static_cast<size_t>(Category::weights)] == 2 * 4096);
  CHECK(live[static_cast<size_t>(Category::gradients)] == 0);  // until a backward needs it
  CHECK(live[static_cast<size_t>(Category::optimizer)] >= 2 * 4096);
  CHECK(live[static_cast<size_t>(Category::optimizer)] < 3 * 4096);  // with the tables of segments
}

TEST_CASE("a parameter without a gradient counts as zero gradient, a frozen one stays", "[optim]") {
  Tensor used = leaf(three, {3}), unused = leaf(three, {3}), frozen = make(three, {3}, Dtype::f64, reference);
  Sgd optimizer({{"used", used}, {"unused", unused}, {"frozen", frozen}}, {.rate = 0.5, .momentum = 0.5});
  set_gradient(used, {1, 1, 1});
  set_gradient(unused, {1, 1, 1});
  optimizer.step();
  optimizer.zero_gradients();
  CHECK_FALSE(autograd::gradient(used));
  set_gradient(used, {1, 1, 1});
  optimizer.step();  // `unused` moves by its momentum alone, not by the gradient that is left in memory
  CHECK(to_vector<double>(used) == std::vector<double>{-0.25, -3.25, 1.75});
  CHECK(to_vector<double>(unused) == std::vector<double>{0.25, -2.75, 2.25});
  CHECK(to_vector<double>(frozen) == three);
  CHECK(optimizer.state().size() == 4);
}

TEST_CASE("a gradient that the tape keeps in a tensor of its own is collected", "[optim]") {
  Tensor x = leaf(three, {3});
  Sgd optimizer({{"x", x}}, {.rate = 1});
  autograd::backward(sum(multiply(x, x)), {.create_graph = true});
  autograd::backward(sum(multiply(x, x)), {.create_graph = true});
  CHECK(x.slot->gradient.storage() != optimizer.units()[0].groups()[0].gradients->slice(0).storage());
  optimizer.step();
  CHECK(to_vector<double>(x) == std::vector<double>{-3, 6, -9});
  optimizer.zero_gradients();
  autograd::backward(sum(x));
  CHECK(to_vector<double>(optimizer.units()[0].groups()[0].gradients->flat())[2] == 1);
}

TEST_CASE("a sweep shows as a write to tensors saved before it", "[optim]") {
  Tensor x = leaf(three, {3});
  AdamW optimizer({{"x", x}});
  const Tensor loss = sum(multiply(x, x));
  optimizer.step();
  CHECK_THROWS_WITH(autograd::backward(loss), Contains("overwritten in place by adamw"));
}

TEST_CASE("clipping measures over all units", "[optim]") {
  const Device device = GENERATE(reference, cpu);
  Tensor a = leaf({0, 0}, {2}, Dtype::f32, device), b = leaf({0}, {1}, Dtype::f32, device);
  Sgd optimizer({{"a", a, true, 1, "first"}, {"b", b, true, 1, "second"}}, {.rate = 1});
  set_gradient(a, {2, 3});
  set_gradient(b, {6});
  CHECK(item(optimizer.step({.max_norm = 0})) == 7);
  CHECK(to_vector<double>(a) == std::vector<double>{-2, -3});
  CHECK(item(optimizer.step({.max_norm = infinity})) == 7);
  CHECK(to_vector<double>(b) == std::vector<double>{-12});
  CHECK(item(optimizer.step({.max_norm = 0.7})) == 7);
  CHECK(to_vector<double>(b)[0] == Approx(-12.6).epsilon(1e-6));
  CHECK(to_vector<double>(autograd::gradient(b)) == std::vector<double>{6});
  CHECK_FALSE(optimizer.step());
}

TEST_CASE("a step with a norm that is not finite changes nothing but the count", "[optim]") {
  const Device device = GENERATE(reference, cpu);
  const double bad = std::array{not_a_number, infinity, -infinity}[GENERATE(0u, 1u, 2u)];
  Tensor x = leaf(three, {3}, Dtype::f32, device), y = leaf({5}, {1}, Dtype::f32, device);
  INFO("gradient " << bad << " on " << name_of(device));
  AdamW optimizer({{"x", x}, {"y", y, true, 1, "other"}});
  set_gradient(x, {1, 2, 3});
  set_gradient(y, {1});
  optimizer.step({.max_norm = 1});
  std::vector<std::vector<double>> before, after;
  const auto read = [&](auto& into) {
    for (const auto& [name, tensor] : optimizer.state())
      if (name != "step") into.push_back(to_vector<double>(tensor));
    into.push_back(to_vector<double>(x));
    into.push_back(to_vector<double>(y));
  };
  read(before);
  set_gradient(y, {bad});
  CHECK_FALSE(std::isfinite(item(optimizer.step({.max_norm = 1}))));
  read(after);
  CHECK(before == after);
  CHECK(optimizer.steps() == 2);
}

TEST_CASE("an optimizer can be planned without memory", "[optim]") {
  Tensor x = empty({1000, 1000}, Dtype::f32, meta);
  autograd::require_gradient(x);
  AdamW optimizer({{"x", x}});
  CHECK(optimizer.step({.max_norm = 1}));
  CHECK(optimizer.steps() == 1);
}

TEST_CASE("optimizers refuse parameters that they cannot train", "[optim]") {
  Tensor x = leaf(three, {3}), same = detach(x);
  autograd::require_gradient(same);
  Tensor part = x.with_layout({2}, {1}, 0), half = empty({3}, Dtype::bf16, reference), other = leaf(three, {3});
  autograd::require_gradient(half);
  const Tensor result = multiply(other, other), elsewhere = leaf(three, {3}, Dtype::f32, cpu);
  const auto refuse = [](std::vector<Parameter> parameters, const std::string& message) {
    CHECK_THROWS_WITH(AdamW(parameters), Contains(message) && Contains("[optim]"));
  };
  refuse({}, "at least one parameter");
  refuse({{"x", Tensor()}}, "parameter x has a tensor");
  refuse({{"x", x}, {"y", Tensor()}}, "parameter y has a tensor");
  refuse({{"x", x}, {"x", other}}, "given twice: x");
  refuse({{"product", result}}, "not the result of an op: product f64[3]@reference");
  refuse({{"part", part}}, "has its storage to itself: part");
  refuse({{"x", x}, {"same", same}}, "tied parameters x and same are copies of one handle");
  refuse({{"half", half}}, "f32 or f64: half bf16[3]@reference");
  refuse({{"x", x}, {"elsewhere", elsewhere}}, "elsewhere f32[3]@cpu");
  refuse({{"x", x, true, -1}}, "rate factor is finite and not negative: x -1");
  CHECK_THROWS_AS(AdamW({{"half", half}}), DtypeError);
  CHECK_THROWS_AS(AdamW({{"x", x}, {"elsewhere", elsewhere}}), DeviceError);
  const void* before = other.view().data;
  CHECK_THROWS_AS(AdamW({{"other", other}, {"x", x}, {"half", half}}), InputError);
  CHECK(other.view().data == before);

  Sgd first({{"x", x}});
  Sgd second({{"x", x}});
  CHECK_THROWS_WITH(first.step(), Contains("parameter x belongs to this optimizer"));
  CHECK(first.steps() == 0);
  second.step();
}

TEST_CASE("optimizers refuse constants outside their range", "[optim]") {
  Tensor x = leaf(three, {3});
  const std::vector<Parameter> parameters{{"x", x}};
  for (const double bad : {-1.0, not_a_number, infinity}) {
    CHECK_THROWS_AS(AdamW(parameters, {.rate = bad}), ValueError);
    CHECK_THROWS_AS(AdamW(parameters, {.eps = bad}), ValueError);
    CHECK_THROWS_AS(AdamW(parameters, {.weight_decay = bad}), ValueError);
    CHECK_THROWS_AS(Sgd(parameters, {.rate = bad}), ValueError);
    CHECK_THROWS_AS(Sgd(parameters, {.weight_decay = bad}), ValueError);
  }
  for (const double bad : {-0.1, 1.0, not_a_number}) {
    CHECK_THROWS_AS(AdamW(parameters, {.beta1 = bad}), ValueError);
    CHECK_THROWS_AS(AdamW(parameters, {.beta2 = bad}), ValueError);
    CHECK_THROWS_AS(Sgd(parameters, {.momentum = bad}), ValueError);
  }
  CHECK_THROWS_AS(AdamW(parameters, {.eps = 0}), ValueError);
  CHECK_THROWS_AS(Sgd(parameters, {.nesterov = true}), ValueError);
  CHECK_THROWS_WITH(AdamW(parameters, {.rate = not_a_number}),
                    Contains("[adamw] the rate is finite and not negative: nan"));

  AdamW optimizer(parameters);
  for (const double bad : {-1.0, not_a_number, infinity})
    CHECK_THROWS_AS(optimizer.step({.rate_factor = bad}), ValueError);
  CHECK_THROWS_AS(optimizer.step({.max_norm = -1}), ValueError);
  CHECK_THROWS_AS(optimizer.step({.max_norm = not_a_number}), ValueError);
  CHECK(optimizer.steps() == 0);
  CHECK(to_vector<double>(x) == three);
}

TEST_CASE("schedules refuse what has no meaning", "[optim]") {
  CHECK_THROWS_WITH(parse_schedule("cosin"),
                    Contains("one of constant, linear, cosine, polynomial, inverse_sqrt; given cosin"));
  using enum ScheduleKind;
  for (const Schedule& bad :
       {Schedule{.warmup = -1}, Schedule{.kind = linear}, Schedule{.kind = cosine, .total = -5},
        Schedule{.kind = linear, .warmup = 11, .total = 10}, Schedule{.kind = polynomial, .total = 10, .power = 0},
        Schedule{.kind = polynomial, .total = 10, .power = not_a_number},
        Schedule{.kind = polynomial, .total = 10, .end_factor = 2},
        Schedule{.kind = polynomial, .total = 10, .end_factor = not_a_number}})
    CHECK_THROWS_AS(check(bad), ValueError);
  check({.kind = inverse_sqrt, .warmup = 11, .total = 10});
}
