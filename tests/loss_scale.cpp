// Loss scaling: the state machine, planted overflows that skip exactly one step, scales that change no bit, and the
// floor.
#include "cinta/optim/loss_scale.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "cinta/autograd/tape.h"
#include "cinta/models/mlp.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "cinta/optim/adamw.h"
#include "cinta/optim/sgd.h"
#include "cinta/train/metrics.h"
#include "data_helpers.h"
#include "train_helpers.h"

using namespace cinta;
using namespace cinta::optim;
using namespace cinta::testing;

namespace {

Tensor leaf(std::vector<float> values) {
  const auto count = static_cast<int64_t>(values.size());
  Tensor out = from_values(values, {count});
  return autograd::require_gradient(out);
}

/// One weight and its scaler, stepped with gradients that are given.
struct One {
  explicit One(const LossScaleOptions& options) : optimizer({{.name = "w", .tensor = w}}), scaler(optimizer, options) {}
  /// The scale after the step.
  double step(float gradient) {
    optimizer.zero_gradients();
    autograd::backward(sum(w), {.seeds = {scaler.scaled(full({}, gradient))}});
    optimizer.step({.loss_scale = scaler.scale()});
    scaler.update();
    return item(scaler.scale());
  }
  Tensor w = leaf({1});
  Sgd optimizer;
  LossScaler scaler;
};

/// Everything that a step may change.
std::vector<std::vector<float>> snapshot(const std::vector<Parameter>& parameters, const Optimizer& optimizer) {
  std::vector<std::vector<float>> out;
  for (const Parameter& parameter : parameters) out.push_back(to_vector<float>(parameter.tensor));
  for (const auto& [name, tensor] : optimizer.state())
    if (name != "step") out.push_back(to_vector<float>(cast(tensor, Dtype::f32)));
  return out;
}

/// Writes `value` into the first gradient of parameter `name` before the optimizer's step `step`; -1: before each.
struct Plant : train::TrainerCallback {
  Plant(std::string name, int64_t step, float value) : name(std::move(name)), step(step), value(value) {}
  void on_pre_optimizer_step(const train::Moment& now) override {
    if (step >= 0 && now.state.step != step) return;
    for (const Parameter& parameter : now.task.model().parameters())
      if (parameter.name == name) autograd::gradient(parameter.tensor).data<float>()[0] = value;
  }
  std::string name;
  int64_t step;
  float value;
};

}  // namespace

TEST_CASE("a loss scale is a number or dynamic with its numbers", "[loss_scale]") {
  CHECK(parse_loss_scale("128").initial == 128);
  CHECK_FALSE(parse_loss_scale("128").dynamic);
  CHECK(parse_loss_scale("dynamic").initial == 65536);
  const LossScaleOptions all =
      parse_loss_scale("dynamic:initial=1024,growth=4,backoff=0.25,interval=10,hysteresis=2,most_skips=7");
  CHECK(all.dynamic);
  CHECK(all.initial == 1024);
  CHECK(all.growth == 4);
  CHECK(all.backoff == 0.25);
  CHECK(all.interval == 10);
  CHECK(all.hysteresis == 2);
  CHECK(all.most_skips == 7);
  CHECK(text_of(all) == "dynamic:initial=1024,growth=4,backoff=0.25,interval=10,hysteresis=2,most_skips=7");
  CHECK(text_of(parse_loss_scale("128")) == "128");
  CHECK(parse_loss_scale(text_of({.dynamic = true, .backoff = 1.0 / 3})).backoff == 1.0 / 3);
  for (const auto& [text, message] : std::vector<std::pair<const char*, const char*>>{
           {"", "given ''"},
           {"fast", "a number, dynamic"},
           {"dynamic:speed=2", "given 'speed=2'"},
           {"dynamic:interval=0", "the interval is at least one step, given 0"},
           {"dynamic:interval=1.5", "given 'interval=1.5'"},
           {"dynamic:hysteresis=0", "hysteresis is at least one overflow"},
           {"dynamic:backoff=1", "backoff lies between 0 and 1"},
           {"dynamic:growth=0.5", "growth is at least 1"},
           {"dynamic:growth=1e39", "growth is at least 1 and finite in f32"},
           {"dynamic:backoff=1e-60", "backoff lies between 0 and 1 in f32"},
           {"dynamic:initial", "a number, dynamic"},
           {"dynamic:", "given 'dynamic:'"}})
    CHECK_THAT(error_of<ValueError>([&, text = text] { parse_loss_scale(text); }), Catch::Contains(message));
  for (double scale : {0.0, -1.0, double{NAN}, double{INFINITY}, 1e60, 1e-60})
    CHECK_THAT(error_of<ValueError>([&] { One one({.initial = scale}); }),
               Catch::Contains("the scale is positive and finite in f32"));
}

TEST_CASE("a skipped step leaves no trace in those that follow", "[loss_scale]") {
  const auto train = [](const std::vector<float>& gradients) {
    const Tensor w = leaf({3});
    AdamW optimizer({{.name = "w", .tensor = w}});
    LossScaler scaler(optimizer, {.initial = 8, .dynamic = true, .backoff = 0.5, .hysteresis = 100});
    for (float gradient : gradients) {
      optimizer.zero_gradients();
      autograd::backward(sum(w), {.seeds = {scaler.scaled(full({}, gradient))}});
      optimizer.step({.loss_scale = scaler.scale()});
      scaler.update();
    }
    return snapshot({{.name = "w", .tensor = w}}, optimizer);
  };
  CHECK(train({INFINITY, 1, NAN, INFINITY, -2, 3, INFINITY}) == train({1, -2, 3}));
  CHECK(train({1, -2, 3, 0}) != train({1, -2, 3}));
}

TEST_CASE("the scale shrinks on overflow, with patience, and grows after good steps", "[loss_scale]") {
  One one({.initial = 8, .dynamic = true, .interval = 3, .hysteresis = 2});
  CHECK(one.step(1) == 8);
  CHECK(one.step(INFINITY) == 8);  // the first overflow is forgiven
  CHECK(one.step(NAN) == 4);
  CHECK(one.step(INFINITY) == 2);  // and none after it, until the scale has grown
  CHECK(one.step(1) == 2);
  CHECK(one.step(1) == 2);
  CHECK(one.step(1) == 4);
  CHECK(one.step(INFINITY) == 4);
  CHECK(one.step(1) == 4);
  CHECK(one.step(1) == 4);
  CHECK(one.step(1) == 8);
  const LossScaler::Report report = one.scaler.report();
  CHECK(report.skipped == 4);
  CHECK(report.skipped_in == "w 4");
  CHECK(one.scaler.report().skipped_in.empty());
  CHECK(to_vector<float>(one.w)[0] == Approx(1 - 7 * 1e-2));  // seven steps of the plain gradient at the usual rate

  One fixed({.initial = 8});
  for (float gradient : {1.0f, INFINITY, 1.0f, INFINITY}) CHECK(fixed.step(gradient) == 8);
  One smallest({.initial = 0x1p-126, .dynamic = true, .most_skips = 3});
  for (int i = 0; i < 3; ++i) CHECK(smallest.step(INFINITY) == 0x1p-126);
  CHECK_THAT(
      error_of<ValueError>([&] { smallest.scaler.report(); }),
      Catch::Contains("the last 3 steps were all skipped") && Catch::Contains("gradients are not finite in w 3"));
  One largest({.initial = 0x1p127, .dynamic = true, .interval = 1});
  CHECK(largest.step(0x1p-100f) == 0x1p127);

  One resumed({.initial = 8, .dynamic = true, .interval = 3, .hysteresis = 2});
  resumed.scaler.load_state(one.scaler.state());
  CHECK(resumed.step(1) == one.step(1));
  CHECK(resumed.step(INFINITY) == one.step(INFINITY));
  CHECK(resumed.step(INFINITY) == one.step(INFINITY));
  CHECK(resumed.scaler.report().skipped == one.scaler.report().skipped);
  One asked_for({.initial = 128});  // another scale than the saved one
  asked_for.scaler.load_state(one.scaler.state());
  CHECK(item(asked_for.scaler.scale()) == 128);
  std::vector<NamedTensor> wrong = one.scaler.state();
  wrong[0].second = full({1}, 0);
  CHECK_THAT(error_of<ValueError>([&] { resumed.scaler.load_state(wrong); }),
             Catch::Contains("a saved scale is positive and finite, given 0"));
  wrong = one.scaler.state();
  wrong.push_back(wrong[1]);
  CHECK_THAT(error_of<ValueError>([&] { resumed.scaler.load_state(wrong); }), Catch::Contains("given 2"));
  wrong.resize(3);
  CHECK_THAT(error_of<ValueError>([&] { resumed.scaler.load_state(wrong); }), Catch::Contains("given 0"));
  wrong = one.scaler.state();
  wrong[1].second = from_values(std::vector<int64_t>{0, 1, -1, 0}, {4});
  CHECK_THAT(error_of<ValueError>([&] { resumed.scaler.load_state(wrong); }), Catch::Contains("not negative"));
}

TEST_CASE("an overflow in any parameter at any step skips that step and moves nothing else", "[loss_scale]") {
  for (bool adamw : {true, false})
    for (size_t which = 0; which < 4; ++which)
      for (int64_t at : {0, 2}) {
        models::Mlp mlp({5, 4, 3}, 1);
        const std::vector<Parameter> parameters = mlp.parameters();
        REQUIRE(parameters.size() == 4);
        std::unique_ptr<Optimizer> optimizer;
        if (adamw)
          optimizer = std::make_unique<AdamW>(parameters);
        else
          optimizer = std::make_unique<Sgd>(parameters, SgdOptions{.momentum = 0.9});
        optimizer->keep_shadows(Dtype::f16);
        LossScaler scaler(*optimizer, {.initial = 1024, .dynamic = true});
        const Tensor x = full({2, 5}, 0.5), labels = from_values(std::vector<int64_t>{0, 2}, {2});
        for (int64_t step = 0; step < 4; ++step) {
          optimizer->zero_gradients();
          autograd::backward(cross_entropy(mlp(x), labels), {.seeds = {scaler.scaled(full({}, 1))}});
          if (step == at) autograd::gradient(parameters[which].tensor).data<float>()[1] = INFINITY;
          const auto before = snapshot(parameters, *optimizer);
          optimizer->step({.max_norm = 1, .loss_scale = scaler.scale()});
          scaler.update();
          CHECK((snapshot(parameters, *optimizer) == before) == (step == at));
          CHECK(item(scaler.scale()) == (step >= at ? 512 : 1024));
        }
      }
}

TEST_CASE("a scale that is a power of two changes no bit in f32", "[loss_scale]") {
  const Scratch scratch;
  const auto weights = [&](double scale) {
    train::RunOptions options = small_run(scratch / join(scale));
    options.loss_scale.initial = scale;
    auto task = small_masked();
    train::run(task, options, small_header);
    return left_behind(options.output_dir)["model.safetensors"];
  };
  const std::string plain = weights(1);
  CHECK(weights(128) == plain);
  CHECK(weights(0x1p-20) == plain);
}

TEST_CASE("the log names what was skipped, and a run that only skips is stopped", "[loss_scale]") {
  const Scratch scratch;
  train::RunOptions options = small_run(scratch / "run");
  options.loss_scale = {.initial = 256, .dynamic = true};
  const std::string name = [] {
    auto task = small_masked();
    return task.model().parameters()[5].name;
  }();
  options.callbacks.push_back(std::make_shared<Plant>(name, 6, INFINITY));
  auto task = small_masked();
  train::run(task, options, small_header);
  const train::MetricsFile metrics = train::read_metrics(options.output_dir + "/metrics.jsonl");
  const train::MetricSeries scale = metrics.series("loss_scale"), skipped = metrics.series("skipped_steps");
  REQUIRE(scale.values.size() == 8);  // every four of thirty steps, and the end
  CHECK(scale.values[0] == 256);
  CHECK(scale.values[1] == 128);
  REQUIRE(skipped.values.size() == 7);
  for (double value : skipped.values) CHECK(value == 1);
  const std::string text = read_bytes(options.output_dir + "/metrics.jsonl");
  const size_t said = text.find("\"skipped_in\":\"");
  REQUIRE(said != text.npos);
  CHECK(text.find("skipped_in", said + 10) == text.npos);
  INFO(text.substr(said, 60));
  CHECK(text.substr(said + 14, name.find(".attention")) == name.substr(0, name.find(".attention")));

  options = small_run(scratch / "hunt");
  options.loss_scale.dynamic = options.detect_anomaly = true;
  auto hunted = small_masked();
  CHECK_THAT(error_of<ValueError>([&] { train::run(hunted, options, small_header); }),
             Catch::Contains("detect_anomaly asks for a static loss scale"));
  CHECK_FALSE(std::filesystem::exists(scratch / "hunt"));
  options = small_run(scratch / "lost");
  options.loss_scale = {.initial = 256, .dynamic = true, .most_skips = 4};
  options.save_steps = 3;
  options.callbacks.push_back(std::make_shared<Plant>(name, -1, NAN));
  auto lost = small_masked();
  CHECK_THAT(error_of<ValueError>([&] { train::run(lost, options, small_header); }),
             Catch::Contains("the last 4 steps were all skipped"));
  CHECK(std::filesystem::is_directory(scratch / "lost/checkpoint-3"));
}

namespace {

/// Its loss overflows in every forward from `first` to `last`, counted from 1.
struct OverflowingTask : ForwardingTask {
  OverflowingTask(train::Task& task, int64_t first, int64_t last) : ForwardingTask(task), first(first), last(last) {}
  train::Forward forward(const data::Batch& batch) override {
    train::Forward out = task.forward(batch);
    ++number;
    if (number >= first && number <= last) out.loss_sum = multiply(out.loss_sum, INFINITY);
    return out;
  }
  int64_t first, last, number = 0;
};

}  // namespace

TEST_CASE("a step whose forward overflows is skipped where the scale is dynamic", "[loss_scale]") {
  const Scratch scratch;
  train::RunOptions options = small_run(scratch / "run");
  options.loss_scale = {.initial = 256, .dynamic = true, .most_skips = 4};
  auto task = small_masked();
  OverflowingTask once(task, 8, 8);  // the second of three micro-batches of the third step
  CHECK(train::run(once, options, small_header).skipped == 1);
  const train::MetricsFile metrics = train::read_metrics(options.output_dir + "/metrics.jsonl");
  CHECK(metrics.series("skipped_steps").values.at(0) == 1);
  for (double loss : metrics.series("loss").values) CHECK(std::isfinite(loss));

  // Many in a row stop the run even where nothing is logged on the way; with a static scale one does.
  options.output_dir = scratch / "stuck";
  options.logging_steps = 30;
  auto second = small_masked();
  OverflowingTask stuck(second, 4, 1000);
  CHECK_THAT(error_of<ValueError>([&] { train::run(stuck, options, small_header); }),
             Catch::Contains("steps were all skipped") && Catch::Contains("gradients are not finite in"));
  CHECK(stuck.number <= 3 * 8);
  options.output_dir = scratch / "static";
  options.loss_scale = {};
  auto third = small_masked();
  OverflowingTask plain(third, 4, 4);
  CHECK_THAT(error_of<ValueError>([&] { train::run(plain, options, small_header); }),
             Catch::Contains("the loss of step 2"));
}

TEST_CASE("a group of parameters is called after its module, or by its ends", "[loss_scale]") {
  models::Mlp mlp({5, 4, 3}, 1);
  Sgd optimizer(mlp.parameters());
  LossScaler scaler(optimizer, {.dynamic = true});
  optimizer.zero_gradients();
  autograd::backward(sum(mlp(full({2, 5}, INFINITY))), {.seeds = {full({}, 1)}});
  optimizer.step({.loss_scale = scaler.scale()});
  scaler.update();
  CHECK(scaler.report().skipped_in == "layers.0.weight .. layers.1.bias 1");
}

TEST_CASE("a loss scale that is not one f32 of the device is refused, and nothing has changed", "[loss_scale]") {
  const Tensor w = leaf({3});
  AdamW optimizer({{.name = "w", .tensor = w}});
  autograd::backward(sum(w));
  const auto state = [&] { return snapshot({{.name = "w", .tensor = w}}, optimizer); };
  const auto before = state();
  const auto check_all = [&](const std::function<void(const Tensor&)>& step) {
    const auto check_one = [&]<class E>(const Tensor& scale, E*) {
      CHECK_THAT(error_of<E>([&] { step(scale); }),
                 Catch::StartsWith(join("[adamw] the loss scale is f32[1]@cpu, given ", scale, ", loss_scale.cpp:")));
      CHECK(state() == before);
    };
    for (const Dtype dtype : {Dtype::bf16, Dtype::f64, Dtype::i64})
      check_one(full({1}, 8, dtype), static_cast<DtypeError*>(nullptr));
    for (const Shape& shape : {Shape{0}, Shape{2}, Shape{}})
      check_one(full(shape, 8), static_cast<ShapeError*>(nullptr));
    for (const Device device : {reference, meta})
      check_one(full({1}, 8, Dtype::f32, device), static_cast<DeviceError*>(nullptr));
  };
  check_all([&](const Tensor& scale) { optimizer.step({.loss_scale = scale}); });
  CHECK(optimizer.steps() == 0);
  optimizer.prepare();
  check_all([&](const Tensor& scale) { optimizer.update({.loss_scale = scale}); });
  optimizer.update({.loss_scale = full({1}, 8)});
  CHECK(state() != before);
}

TEST_CASE("what cannot be scaled is refused by name and place", "[loss_scale]") {
  One one({.initial = 8});
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    CHECK(to_vector<float>(one.scaler.scaled(full({2}, 3, dtype))) == std::vector<float>{24, 24});
  const Names named{"[loss_scale]", "loss_scale.cpp:"};
  for (const Tensor& seed : {Tensor(), full({1}, 1, Dtype::i64)})
    for (const std::string& part : named)
      CHECK_THAT(error_of<DtypeError>([&] { one.scaler.scaled(seed); }), Catch::Contains(part));
  for (const std::string& part : named)
    CHECK_THAT(error_of<DeviceError>([&] { one.scaler.scaled(full({1}, 1, Dtype::f32, reference)); }),
               Catch::Contains(part));
}
