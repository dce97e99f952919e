// A captured step: its replays are the steps that would have been, bit for bit, and what it cannot repeat it refuses.
#include "cinta/backends/captured_step.h"

#include <catch2/catch.hpp>
#include <thread>

#include "autocast_helpers.h"
#include "bert_helpers.h"
#include "cinta/autograd/narrow_products.h"
#include "cinta/autograd/tape.h"
#include "cinta/backends/kernels/quantize.h"
#include "cinta/models/mlp.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/reduce.h"
#include "cinta/optim/adamw.h"
#include "cinta/optim/loss_scale.h"
#include "cinta/optim/sgd.h"
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

namespace {

/// Which parts of a step are captured.
struct Parts {
  bool first, more, update, evaluation;
};

/// The losses of an evaluation before and after each update, where a step has two micro-batches and somebody writes
/// into a weight between the steps.
Numbers train_in_parts(const std::string& precision, bool shadows, Parts captured) {
  models::Mlp model({16, 32, 16}, 3);
  const Tensor x = spread({16, 16}, 1), labels = full({16}, 2, Dtype::i64);
  optim::AdamW optimizer(model.parameters(), {.rate = 0.01});
  const std::optional<autograd::Autocast> types = train::parse_precision(precision);
  if (shadows) optimizer.keep_shadows(Dtype::bf16);
  const auto forward = [&] {
    const autograd::AutocastScope scope(types);
    return cross_entropy(model(x), labels);
  };
  Tensor loss;
  const auto evaluate = [&] {
    const autograd::NoGrad off;
    loss = detach(forward());
  };
  const auto more = [&] { autograd::backward(forward()); };
  const auto first = [&] { optimizer.zero_gradients(), more(); };
  const auto update = [&] {
    optimizer.update({.max_norm = 1});
    if (types && types->products) types->products->update(optimizer.gradient_factor());
  };
  std::optional<CapturedStep> parts[4];
  const auto run = [&](int part, bool capture, const Callback<void()>& step) {
    if (parts[part])
      parts[part]->replay();
    else if (capture)
      parts[part].emplace(cpu, step);
    else
      step();
  };
  Numbers out;
  for (int number = 0; number < 6; ++number) {
    const bool warm = number > 0;
    optimizer.prepare();
    run(0, warm && captured.first, first);
    run(3, warm && captured.evaluation, evaluate);
    out.push_back(values(loss));
    run(1, warm && captured.more, more);
    run(2, warm && captured.update, update);
    run(3, warm && captured.evaluation, evaluate);
    out.push_back(values(loss));
    const Tensor weight = model.parameters()[0].tensor;
    const autograd::NoGrad off;
    if (number % 2) copy_(weight, spread(weight.shape(), static_cast<uint32_t>(number)));
  }
  return out;
}

}  // namespace

TEST_CASE("parts of a step are captured, with evaluations and written weights between", "[captured]") {
  for (const auto& [precision, shadows] :
       {std::pair{"fp32", false}, {"bf16", false}, {"bf16", true}, {"fp8", false}, {"fp8/delayed,history=3", true}}) {
    const Numbers plain = train_in_parts(precision, shadows, {});
    for (const Parts& captured : {Parts{true, true, true, true}, Parts{false, true, false, false},
                                  Parts{false, false, true, false}, Parts{false, false, false, true}}) {
      INFO(precision << (shadows ? " with shadows" : "") << captured.first << captured.more << captured.update
                     << captured.evaluation);
      CHECK(train_in_parts(precision, shadows, captured) == plain);
    }
  }
}

TEST_CASE("gradients are cleared outside of what is captured, or kept", "[captured]") {
  const auto train = [](bool captured, bool clears) {
    models::Mlp model({6, 5, 3}, 3);
    const Tensor x = spread({8, 6}, 1), labels = full({8}, 2, Dtype::i64);
    Tensor bare = spread({6}, 2);
    autograd::require_gradient(bare);
    optim::Sgd optimizer(model.parameters(), {.rate = 0.1});
    const auto pass = [&] { autograd::backward(cross_entropy(model(x * bare), labels)); };
    std::optional<CapturedStep> replayed;
    Numbers out;
    for (int number = 0; number < 6; ++number) {
      if (clears) {
        optimizer.zero_gradients();
        autograd::clear_gradient(bare);
      }
      if (!captured || number < 1)
        pass();
      else if (!replayed)
        replayed.emplace(cpu, pass);
      else
        replayed->replay();
      out.push_back(values(autograd::gradient(bare)));
      optimizer.step();
      for (const models::NamedTensor& named : model.named_tensors()) out.push_back(values(named.tensor));
    }
    // What adds to gradients finds none, or what writes them finds some.
    if (captured && clears) CHECK_THROWS_WITH(replayed->replay(), Catch::Contains("as it was before the step"));
    if (captured && !clears) {
      optimizer.zero_gradients();
      CHECK_THROWS_WITH(replayed->replay(), Catch::Contains("[captured_step] each gradient"));
    }
    return out;
  };
  for (const bool clears : {false, true}) {
    INFO(clears);
    CHECK(train(true, clears) == train(false, clears));
  }
}

TEST_CASE("a captured step that clears gradients last leaves none", "[captured]") {
  Tensor leaf = spread({4}, 1);
  autograd::require_gradient(leaf);
  const auto pass = [&] {
    autograd::backward(sum(leaf * leaf));
    autograd::clear_gradient(leaf);
  };
  pass();
  CapturedStep step(cpu, pass);
  step.replay();
  CHECK(!autograd::gradient(leaf));
}

TEST_CASE("what a replay could not repeat is refused, and nothing goes on being captured", "[captured]") {
  models::Mlp model({6, 5, 3}, 3);
  const Tensor x = spread({8, 6}, 1), labels = full({8}, 2, Dtype::i64);
  optim::AdamW optimizer(model.parameters(), {.rate = 0.01});
  const auto fault = [&](const Callback<void()>& step) {
    return error_of<ValueError>([&] { CapturedStep(cpu, step); });
  };
  CHECK_THROWS_AS(CapturedStep(cpu, [] { empty({2}, Dtype::f32, Device{max_backends}); }), DeviceError);
  CHECK_THAT(fault([] { from_values<float>({1}, {1}); }), Catch::Contains("[from_values] a captured step copies"));
  CHECK_THAT(fault([&] { item(cross_entropy(model(x), labels)); }), Catch::Contains("[to_vector] a captured step"));
  CHECK_THAT(fault([&] { x.data<float>()[0] = 1; }), Catch::Contains("[data] a captured step"));
  CHECK_THAT(fault([&] { optimizer.step(); }), Catch::Contains("Optimizer::prepare()"));
  CHECK_THAT(fault([&] { Random(3).set_step(1); }), Catch::Contains("a captured step copies"));
  Tensor leaf = spread({4}, 1);
  autograd::require_gradient(leaf);
  CHECK_THAT(fault([&] { autograd::backward(sum(leaf * leaf), {.create_graph = true}); }),
             Catch::Contains("without create_graph"));
  leaf.slot->hooks.push_back([](Tensor& gradient) { gradient = detach(gradient * 2); });
  CHECK_THAT(fault([&] { autograd::backward(sum(leaf * leaf)); }), Catch::Contains("changes the gradient where it is"));
  CHECK_THAT(fault([&] { CapturedStep(cpu, [] {}); }), Catch::Contains("nothing else watches the rows of cpu"));
  CHECK_THAT(fault([&] {
               try {
                 kernels::quantize(cpu, x, x, {}, {8, 6}, {});
                 kernels::quantize(cpu, labels, x, {}, {8, 6}, {});
               } catch (const Error&) {
               }
               relu(x);
             }),
             Catch::Contains("no row of the step throws"));
  CHECK_THAT(fault([&] { std::thread([&] { relu(x); }).join(); }),
             Catch::Contains("run on the capturing thread alone"));
  CHECK(row_watcher(cpu) == nullptr);
  CHECK(optimizer.steps() == 0);
  CHECK(item(full({}, 3)) == 3);
}

TEST_CASE("an update wants a preparation of its own", "[captured]") {
  models::Mlp model({6, 5, 3}, 3);
  optim::AdamW optimizer(model.parameters(), {.rate = 0.01});
  const auto fault = [&](const Callback<void()>& call) { return error_of<ValueError>([&] { call(); }); };
  CHECK_THAT(fault([&] { optimizer.update(); }), Catch::Contains("prepare() comes before each update()"));
  optimizer.prepare();
  CHECK_THAT(fault([&] { optimizer.update({.rate_factor = 0.5}); }), Catch::Contains("given the rate's factor"));
  CapturedStep step(cpu, [&] {
    optimizer.zero_gradients();
    autograd::backward(sum(model(full({8, 6}, 1))));
    optimizer.update();
  });
  const auto all = [&] {
    Numbers out{values(model.parameters()[0].tensor)};
    for (const auto& [name, tensor] : optimizer.state()) out.push_back(values(tensor));
    return out;
  };
  const Numbers before = all();
  CHECK_THAT(fault([&] { step.replay(); }), Catch::Contains("each of its replays"));
  CHECK(all() == before);  // no row has run
  CHECK_NOTHROW(optimizer.load_state(optimizer.state()));
  optimizer.prepare();
  CHECK_NOTHROW(step.replay());
  CHECK(optimizer.steps() == 2);
}

TEST_CASE("fp8 goes on after a capture that came too early", "[captured]") {
  const auto run = [](bool too_early) {
    Tensor weight = leaf({16, 32}, 2);
    const Tensor x = spread({16, 32}, 1);
    const autograd::Autocast types = *train::parse_precision("fp8/delayed,history=3");
    const auto step = [&] {
      const autograd::AutocastScope scope(types);
      autograd::backward(linear(x, weight), {.seeds = {full({16, 16}, 1, Dtype::bf16)}});
    };
    if (too_early) CHECK_THROWS_AS(CapturedStep(cpu, step), ValueError);
    step();
    CHECK(types.products->take_counts().size() == 1);
    return values(autograd::gradient(weight));
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("an index that is out of range is told by the replay that meets it", "[captured]") {
  const Tensor x = spread({4, 3}, 1), labels = full({4}, 2, Dtype::i64), after = full({}, 0);
  Tensor loss;
  CapturedStep step(cpu, [&] {
    loss = cross_entropy(x, labels);
    fill_(after, 2);
  });
  CHECK(step.rows() > 0);
  const double before = item(loss);
  copy_(labels, full({4}, 3, Dtype::i64));
  fill_(after, 7);
  CHECK_THROWS_WITH(step.replay(), Catch::StartsWith("[cross_entropy] index 3 at position 0 is outside [0, 3), ") &&
                                       Catch::Contains("captured_step.cpp:"));
  CHECK(item(after) == 7);  // what follows has not run
  copy_(labels, full({4}, 2, Dtype::i64));
  step.replay();
  CHECK(item(loss) == before);
  CHECK(item(after) == 2);
}

TEST_CASE("a replay that breaks off leaves no gradients of the step before", "[captured]") {
  Tensor leaf = spread({4, 3}, 1);
  autograd::require_gradient(leaf);
  const Tensor labels = full({4}, 2, Dtype::i64);
  for (const bool clears : {true, false}) {
    const auto step = [&] {
      if (clears) autograd::clear_gradient(leaf);
      autograd::backward(cross_entropy(leaf, labels));
    };
    autograd::clear_gradient(leaf);
    step();
    CapturedStep captured(cpu, step);
    captured.replay();
    const std::vector<float> gathered = values(autograd::gradient(leaf));
    fill_(labels, 3);
    CHECK_THROWS_AS(captured.replay(), ValueError);
    if (clears)
      CHECK(!autograd::gradient(leaf));
    else
      CHECK(values(autograd::gradient(leaf)) == gathered);
    fill_(labels, 2);
    captured.replay();
    CHECK((values(autograd::gradient(leaf)) == gathered) == clears);
  }
}

TEST_CASE("a capture refuses rows of other threads, which go on", "[captured]") {
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0}, wrong{0};
  std::jthread other([&] {
    Context own;
    const ContextScope scope(own);
    set_threads(1);
    const Tensor x = full({16, 16}, 0.5);
    for (; !stop; ++rounds) wrong += values(x + x) != std::vector<float>(256, 1);
  });
  const Tensor x = full({8}, 1);
  for (int i = 0; i < 200; ++i) {
    std::string said;
    try {
      CapturedStep step(cpu, [&] {
        for (const int before = rounds; rounds < before + 2;) std::this_thread::yield();
        fill_(x, i);
      });
    } catch (const ValueError& error) {
      said = error.what();
    }
    wrong += said.find("others ran") == said.npos;
  }
  stop = true;
  other.join();
  CHECK(wrong == 0);
}

TEST_CASE("a replay within a capture, and a step without rows, are refused", "[captured]") {
  const Tensor x = full({8}, 1), y = full({8}, 2);
  CapturedStep inner(cpu, [&] { copy_(x, y); });
  CHECK_THAT(error_of<ValueError>([&] { CapturedStep(cpu, [&] { inner.replay(); }); }),
             Catch::Contains("a replay is no part of a step that is captured"));
  CHECK_THAT(error_of<ValueError>([&] { CapturedStep(reference, [&] { copy_(y, x); }); }),
             Catch::Contains("a step with rows of reference: none has run"));
  fill_(y, 3);
  inner.replay();
  CHECK(values(x) == std::vector<float>(8, 3));
}
