// A captured step: its replays are the steps that would have been, bit for bit, and what it cannot repeat it refuses.
#include "cinta/backends/captured_step.h"

#include <catch2/catch.hpp>

#include "autocast_helpers.h"
#include "bert_helpers.h"
#include "cinta/autograd/narrow_products.h"
#include "cinta/autograd/tape.h"
#include "cinta/backends/kernel.h"
#include "cinta/models/mlp.h"
#include "cinta/ops/loss.h"
#include "cinta/optim/adamw.h"
#include "cinta/optim/loss_scale.h"
#include "cinta/train/precision.h"
#include "data_helpers.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

constexpr int step_count = 20;

using Numbers = std::vector<std::vector<float>>;

/// The losses of 20 steps and the weights after them.
template <class Forward>
Numbers train_steps(
    models::Module& model, const Forward& forward, const std::vector<Tensor>& inputs, bool captured,
    const std::string& precision = "fp32", bool scaled = false, const Callback<void(int)>& before_step = [](int) {}) {
  optim::AdamW optimizer(model.parameters(), {.rate = 0.01});
  const std::optional<autograd::Autocast> types = train::parse_precision(precision);
  if (types && types->low != Dtype::f32) optimizer.keep_shadows(types->low);
  std::optional<optim::LossScaler> scaler;
  if (scaled) scaler.emplace(optimizer, optim::parse_loss_scale("dynamic:initial=1e38,interval=3"));
  Tensor loss;
  const auto step = [&] {
    optimizer.zero_gradients();
    {
      const autograd::AutocastScope scope(types);
      loss = forward();
    }
    const Tensor seed = full({}, 1);
    autograd::backward(loss, {.seeds = {scaler ? scaler->scaled(seed) : seed}});
    optimizer.update({.max_norm = 0.5, .loss_scale = scaler ? scaler->scale() : Tensor()});
    if (scaler) scaler->update();
    if (types && types->products) types->products->update(optimizer.gradient_factor());
  };
  std::optional<CapturedStep> replayed;
  Numbers out;
  for (int number = 0; number < step_count; ++number) {
    for (const Tensor& input : inputs)
      copy_(input, input.dtype() == Dtype::f32 ? spread(input.shape(), static_cast<uint32_t>(number))
                                               : full(input.shape(), 1 + number % 9, Dtype::i64));
    before_step(number);
    optimizer.prepare(1.0 / (1 + number));
    if (!captured || number < 2)
      step();
    else if (!replayed)
      replayed.emplace(cpu, step);
    else
      replayed->replay();
    if (captured && number == 5) {  // others may write where they are given memory
      std::vector<Tensor> others;
      for (int64_t size = 1; size < 1 << 18; size *= 2) others.push_back(full({size}, NAN));
    }
    out.push_back(values(loss));
  }
  for (const models::NamedTensor& named : model.named_tensors()) out.push_back(values(named.tensor));
  CHECK(optimizer.steps() == step_count);
  return out;
}

}  // namespace

TEST_CASE("replays of an MLP's step are its steps", "[captured]") {
  for (const char* precision : {"fp32", "tf32", "bf16", "fp16", "fp8", "fp8/delayed,history=3", "fp8/block"}) {
    INFO(precision);
    const auto run = [&](bool captured) {
      models::Mlp model({12, 20, 7, 10}, 3);
      const Tensor x = full({9, 12}, 0), labels = full({9}, 0, Dtype::i64);
      return train_steps(
          model, [&] { return cross_entropy(model(x), labels); }, {x, labels}, captured, precision,
          precision == std::string("fp16"));
    };
    const Numbers plain = run(false);
    CHECK(run(true) == plain);
    CHECK(plain[step_count - 1] != plain[0]);
  }
}

TEST_CASE("replays of a BERT's step draw each step's dropout", "[captured]") {
  for (const char* policy : {"none", "every:1"}) {
    const auto run = [&](bool captured) {
      models::BertForMaskedLM model(small_config(0.1), 3);
      model.set_checkpoint_policy(autograd::parse_checkpoint_policy(policy));
      const Tensor ids = full({4, 12}, 5, Dtype::i64), labels = full({4 * 12}, 7, Dtype::i64);
      return train_steps(
          model, [&] { return cross_entropy(model(models::TokenBatch{.ids = ids}), labels); }, {ids}, captured, "bf16",
          false, [&](int number) { model.random().set_step(number); });
    };
    CHECK(run(true) == run(false));
  }
}

TEST_CASE("a step that adds up gradients is captured in parts", "[captured]") {
  const auto run = [&](bool captured) {
    models::Mlp model({6, 5, 3}, 3);
    const Tensor x = spread({8, 6}, 1), labels = full({8}, 2, Dtype::i64);
    optim::AdamW optimizer(model.parameters(), {.rate = 0.01});
    const auto more = [&] { autograd::backward(cross_entropy(model(x), labels)); };
    const auto first = [&] { optimizer.zero_gradients(), more(); };
    const auto update = [&] { optimizer.update(); };
    optimizer.prepare();
    std::optional<CapturedStep> parts[3];
    if (captured) parts[0].emplace(cpu, first), parts[1].emplace(cpu, more), parts[2].emplace(cpu, update);
    if (!captured) first(), more(), update();
    for (int number = 1; number < 4; ++number) {
      optimizer.prepare();
      if (captured) parts[0]->replay(), parts[1]->replay(), parts[2]->replay();
      if (!captured) first(), more(), update();
    }
    Numbers out;
    for (const models::NamedTensor& named : model.named_tensors()) out.push_back(values(named.tensor));
    return out;
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("what a replay could not repeat is refused, and nothing goes on being captured", "[captured]") {
  models::Mlp model({6, 5, 3}, 3);
  const Tensor x = spread({8, 6}, 1), labels = full({8}, 2, Dtype::i64);
  optim::AdamW optimizer(model.parameters(), {.rate = 0.01});
  const auto fault = [&](const Callback<void()>& step) {
    return error_of<ValueError>([&] { CapturedStep(cpu, step); });
  };
  CHECK_THAT(fault([] { from_values<float>({1}, {1}); }), Catch::Contains("[from_values] a captured step copies"));
  CHECK_THAT(fault([&] { item(cross_entropy(model(x), labels)); }), Catch::Contains("[to_vector] a captured step"));
  CHECK_THAT(fault([&] { optimizer.step(); }), Catch::Contains("Optimizer::prepare()"));
  CHECK_THAT(fault([&] { Random(3).set_step(1); }), Catch::Contains("a captured step copies"));
  CHECK_THAT(fault([&] { CapturedStep(cpu, [] {}); }), Catch::Contains("nothing else watches the rows of cpu"));
  CHECK(row_watcher(cpu) == nullptr);
  CHECK(optimizer.steps() == 0);
  CHECK(item(full({}, 3)) == 3);
}

TEST_CASE("an index that is out of range is told by the replay that meets it", "[captured]") {
  const Tensor x = spread({4, 3}, 1), labels = full({4}, 2, Dtype::i64);
  Tensor loss;
  CapturedStep step(cpu, [&] { loss = cross_entropy(x, labels); });
  CHECK(step.rows() > 0);
  const double before = item(loss);
  copy_(labels, full({4}, 3, Dtype::i64));
  CHECK_THROWS_AS(step.replay(), ValueError);
  copy_(labels, full({4}, 2, Dtype::i64));
  step.replay();
  CHECK(item(loss) == before);
}
