// The memory of gradients between steps: given back while nobody has them, kept where a captured step knows it.
#include <catch2/catch.hpp>
#include <cmath>
#include <utility>

#include "bert_helpers.h"
#include "cinta/backends/captured_step.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/backends/kernels/normalize.h"
#include "cinta/core/context.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/normalize.h"
#include "cinta/ops/reduce.h"
#include "cinta/optim/adamw.h"
#include "optim_helpers.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

int64_t live(Category category) { return memory_statistics(cpu).live[static_cast<size_t>(category)]; }

Tensor loss_of(const models::BertForMaskedLM& model) {
  std::vector<int64_t> ids(24);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * 7 % 61);
  const Tensor tokens = from_values(ids, {2, 12});
  return cross_entropy(model({tokens}), reshape(tokens, {24}));
}

}  // namespace

TEST_CASE("forgotten gradients take no memory until the next backward", "[gradient_memory]") {
  Context own;
  const ContextScope scope(own);
  const models::BertForMaskedLM model(small_config(), 3);
  optim::AdamW optimizer(model.parameters());
  autograd::backward(loss_of(model));
  const int64_t all = live(Category::gradients);
  CHECK(all >= 4 * model.parameter_count());
  const Tensor held = autograd::gradient(model.parameters().front().tensor);
  const std::vector<double> before = to_vector<double>(held);
  optimizer.zero_gradients();
  autograd::backward(loss_of(model));
  CHECK(to_vector<double>(held) == before);  // whoever holds one keeps it
  CHECK(to_vector<double>(autograd::gradient(model.parameters().front().tensor)) == before);

  optimizer.zero_gradients();
  const Tensor loss = loss_of(model);
  CHECK(live(Category::gradients) < all / 2);  // what is held is a slice of one unit's
  autograd::backward(loss);
  CHECK(live(Category::gradients) >= all);
  optimizer.step({.max_norm = 1.0});
  CHECK(item(loss_of(model)) < item(loss));
}

TEST_CASE("the gaps between gradients are 0 in whatever memory they get", "[gradient_memory]") {
  Context own;
  const ContextScope scope(own);
  Tensor a = leaf({1, 2, 3}, {3}, Dtype::f32, cpu), b = leaf({4}, {1}, Dtype::f32, cpu);
  optim::AdamW optimizer({{"a", a}, {"b", b}});
  const optim::Group& group = optimizer.units()[0].groups()[0];
  for (int i = 0; i < 3; ++i) {
    optimizer.zero_gradients();
    { const Tensor rubbish = full({2 * optim::alignment}, 7.0); }
    autograd::backward(sum(multiply(a, a)) + sum(b));
    const std::vector<float> flat = to_vector<float>(group.gradients->flat());
    for (size_t k = 0; k < flat.size(); ++k)
      CHECK(flat[k] == (k < 3 ? 2.0f * static_cast<float>(k + 1) : k == optim::alignment ? 1.0f : 0.0f));
  }
}

TEST_CASE("gradients that a captured step writes stay where they are", "[gradient_memory]") {
  Tensor x = leaf({1, -2, 3}, {3}, Dtype::f32, cpu), other = leaf({1, -2, 3}, {3}, Dtype::f32, cpu);
  optim::AdamW optimizer({{"x", x}}, {.rate = 0.1}), plain({{"x", other}}, {.rate = 0.1});
  const auto backward = [&] { autograd::backward(sum(multiply(x, multiply(x, x)))); };
  const auto expected = [&] {
    plain.zero_gradients();
    autograd::backward(sum(multiply(other, multiply(other, other))));
    plain.step();
    return to_vector<float>(other);
  };
  optimizer.zero_gradients();
  backward();
  optimizer.step();
  CHECK(to_vector<float>(x) == expected());
  // Backward alone is captured; what is around it is done anew each time, with other memory in use between.
  optimizer.zero_gradients();
  CapturedStep captured(cpu, backward);
  optimizer.step();
  CHECK(to_vector<float>(x) == expected());
  for (int i = 0; i < 3; ++i) {
    optimizer.zero_gradients();
    const Tensor between = full({64}, 5.0);
    fill_(x.slot->gradient, 0);
    captured.replay();
    optimizer.step();
    CHECK(to_vector<float>(between) == std::vector<float>(64, 5));
    CHECK(to_vector<float>(x) == expected());
  }
}

TEST_CASE("a gradient that a captured step reads stays where it is", "[gradient_memory]") {
  Tensor x = leaf({1, -2, 3}, {3}, Dtype::f32, cpu);
  optim::AdamW optimizer({{"x", x}});
  autograd::backward(sum(multiply(x, x)));
  const Tensor out = full({}, 0.0);
  CapturedStep norm(cpu, [&] { copy_(out, sum(multiply(autograd::gradient(x), autograd::gradient(x)))); });
  CHECK(item(out) == 4.0 * 14);
  optimizer.zero_gradients();
  const Tensor between = full({64}, 5.0);
  autograd::backward(sum(x));
  norm.replay();
  CHECK(item(out) == 3);
}

TEST_CASE("a gradient is written over where nobody else can see it, and nowhere else", "[gradient_memory]") {
  /// The rows whose output lay where the gradient that they were given did.
  struct InPlace : RowWatcher {
    InPlace() { watch_rows(cpu, this); }
    ~InPlace() override { watch_rows(cpu, nullptr); }
    void before(const KernelRow& row, std::span<const View> views) override {
      const bool behind_activation = &row == &kernels::activation_backward,
                 behind_norm = &row == &kernels::residual_norm_backward;
      if (behind_activation && views[0].data == views[2].data) rows.push_back("activation");
      if (behind_norm && views[1].data == views[5].data) rows.push_back("norm");
    }
    void after(const KernelRow&, std::span<const View>) override {}
    std::vector<std::string> rows;
  };
  const auto values = [](Shape shape, double first) {
    std::vector<double> out(static_cast<size_t>(shape.numel()));
    for (size_t i = 0; i < out.size(); ++i) out[i] = std::sin(first + 0.7 * static_cast<double>(i));
    return leaf(out, shape, Dtype::f32, cpu);
  };
  const Tensor x = values({3, 4}, 1), w = values({5, 4}, 2), v = values({4, 5}, 3), residual = values({3, 4}, 4);
  using Rows = std::vector<std::string>;
  InPlace in_place;
  const auto walk = [&](bool holds) {
    const Tensor hidden = linear(x, w, {}, Activation::gelu),
                 y = residual_norm(linear(hidden, v), {}, residual, {}, {}), loss = sum(y * y * y);
    if (!holds) return to_vector<float>(autograd::grad({loss}, {x})[0]);
    const std::vector<Tensor> found = autograd::grad({loss}, {x, hidden, y}, {.retain_graph = true});
    CHECK(to_vector<float>(found[1]) == to_vector<float>(autograd::grad({y}, {hidden}, {.seeds = {found[2]}})[0]));
    return to_vector<float>(found[0]);
  };
  const std::vector<float> alone = walk(false);
  CHECK(std::exchange(in_place.rows, {}) == Rows{"norm", "activation"});
  CHECK(walk(true) == alone);
  CHECK(in_place.rows.empty());
}
