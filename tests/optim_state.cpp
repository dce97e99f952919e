// Optimizer state by name: a resumed run continues with the same bits, and state of another run is refused whole.
#include <catch2/catch.hpp>
#include <limits>

#include "cinta/optim/adamw.h"
#include "cinta/optim/sgd.h"
#include "optim_helpers.h"

using namespace cinta;
using namespace cinta::testing;
using namespace cinta::optim;
using Catch::Matchers::Contains;

namespace {

/// Two parameters in two blocks, and steps on gradients that are formulas of the step.
struct Run {
  explicit Run(Device device)
      : weight(leaf(sequence(70, [](double i) { return std::sin(i); }), {7, 10}, Dtype::f32, device)),
        bias(leaf(sequence(3, [](double i) { return i; }), {3}, Dtype::f32, device)) {}
  std::vector<Parameter> parameters() const {
    return {{"weight", weight, true, 1, "first"}, {"bias", bias, false, 0.5f, "second"}};
  }
  void step(Optimizer& optimizer) const {
    const auto at = static_cast<double>(optimizer.steps());
    set_gradient(weight, sequence(70, [&](double i) { return std::cos(i + at); }));
    set_gradient(bias, sequence(3, [&](double i) { return std::cos(2 * i - at); }));
    optimizer.step({.max_norm = 1});
  }
  Tensor weight, bias;
};

/// Copies on the CPU: what a file would hold.
std::vector<NamedTensor> saved(const Optimizer& optimizer) {
  std::vector<NamedTensor> out;
  for (const auto& [name, tensor] : optimizer.state()) {
    Tensor copy = empty(tensor.shape(), tensor.dtype(), cpu);
    copy_bytes(copy, tensor);
    out.emplace_back(name, copy);
  }
  return out;
}

template <class Rule, class Options>
void resume(Device device, const Options& options) {
  Run whole(device), first(device);
  Rule uninterrupted(whole.parameters(), options);
  for (int i = 0; i < 6; ++i) whole.step(uninterrupted);

  Rule before(first.parameters(), options);
  for (int i = 0; i < 3; ++i) first.step(before);
  Run second(device);
  copy_bytes(second.weight, first.weight);
  copy_bytes(second.bias, first.bias);
  Rule after(second.parameters(), options);
  after.load_state(saved(before));
  CHECK(after.steps() == 3);
  for (int i = 0; i < 3; ++i) second.step(after);
  CHECK(to_vector<float>(second.weight) == to_vector<float>(whole.weight));
  CHECK(to_vector<float>(second.bias) == to_vector<float>(whole.bias));
  CHECK(after.steps() == uninterrupted.steps());
}

}  // namespace

TEST_CASE("a resumed optimizer continues with the same bits", "[optim]") {
  const Device device = GENERATE(reference, cpu);
  resume<AdamW>(device, AdamWOptions{.rate = 0.05});
  resume<Sgd>(device, SgdOptions{.rate = 0.05, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true});
  resume<Sgd>(device, SgdOptions{.rate = 0.05});
}

TEST_CASE("state has the parameters' names and shapes", "[optim]") {
  const Run run(reference);
  AdamW optimizer(run.parameters());
  run.step(optimizer);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : optimizer.state()) {
    names.push_back(name);
    if (name.starts_with("weight")) CHECK(tensor.shape() == run.weight.shape());
    if (name == "step") CHECK(to_vector<int64_t>(tensor) == std::vector<int64_t>{1});
  }
  CHECK(names == std::vector<std::string>{"weight.exp_avg", "weight.exp_avg_sq", "bias.exp_avg", "bias.exp_avg_sq",
                                          "step", "updates"});
}

TEST_CASE("state of another form is refused before anything changes", "[optim]") {
  const Run run(reference);
  AdamW optimizer(run.parameters());
  run.step(optimizer);
  const auto good = saved(optimizer);
  run.step(optimizer);
  const auto refuse = [&](std::vector<NamedTensor> state, const std::string& message) {
    CHECK_THROWS_WITH(optimizer.load_state(state), Contains(message) && Contains("[adamw]"));
    CHECK(optimizer.steps() == 2);
    CHECK(to_vector<float>(optimizer.state()[0].second) != to_vector<float>(good[0].second));
  };
  const auto changed = [&](size_t i, const std::string& name, const Tensor& tensor) {
    auto state = good;
    state[i] = {name, tensor};
    return state;
  };
  for (size_t i = 0; i < good.size(); ++i) {
    auto state = good;
    state.erase(state.begin() + static_cast<std::ptrdiff_t>(i));
    refuse(state, "state is missing: " + good[i].first);
  }
  auto more = good;
  more.emplace_back("head.exp_avg", good[2].second);
  refuse(more, "unknown state: head.exp_avg");
  more.back().first = "step";
  refuse(more, "given once: step");
  refuse(changed(2, "bias.exp_avg", Tensor()), "bias.exp_avg");
  refuse(changed(2, "bias.exp_avg", empty({4})), "state bias.exp_avg is contiguous, of shape [3]");
  refuse(changed(2, "bias.exp_avg", empty({3}, Dtype::f64)), "state bias.exp_avg is f32");
  for (const int64_t steps : {int64_t{-1}, std::numeric_limits<int64_t>::max()})
    refuse(changed(4, "step", from_values(std::vector<int64_t>{steps}, {})),
           join("steps are not negative and can be counted on: ", steps));
  refuse(changed(4, "step", from_values(std::vector<int64_t>{1, 2}, {2})), "state step is contiguous, of shape []");
  refuse(changed(5, "updates", from_values(std::vector<int64_t>{2}, {1})), "updates are between 0 and the 1 steps: 2");
  optimizer.load_state(good);
  CHECK(optimizer.steps() == 1);
  CHECK(to_vector<float>(optimizer.state()[0].second) == to_vector<float>(good[0].second));
}
