// Checkpointing: the same gradients bit for bit with less memory, no op run again that was to be kept, one hook call
// for a weight used inside and outside, and functions that change are found out.
#include <catch2/catch.hpp>
#include <map>

#include "bert_helpers.h"
#include "cinta/autograd/checkpoint.h"
#include "cinta/autograd/function.h"
#include "cinta/autograd/gradcheck.h"
#include "cinta/autograd/offload.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/context.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/dropout.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/softmax.h"
#include "data_helpers.h"

using namespace cinta;
using namespace cinta::autograd;
using namespace cinta::testing;

namespace {

Tensor leaf(const std::vector<float>& values) {
  Tensor out = from_values(values, {static_cast<int64_t>(values.size())});
  return require_gradient(out);
}
std::vector<float> values(const Tensor& tensor) { return to_vector<float>(tensor); }

/// Counts the ops that run.
struct Counter : Observer {
  std::map<std::string, int> runs;
  void forward(const char* name, Where, std::span<const Tensor>) override { ++runs[name]; }
  void backward(const Node&, std::span<const Tensor>) override {}
};

struct Outcome {
  std::map<std::string, std::vector<float>> gradients;
  int64_t activation_bytes;  // alive between forward and backward
  std::map<std::string, int> runs_again;
};

constexpr int layers = 4;

/// One step of a BERT with dropout and padding.
Outcome bert_step(const std::string& policy, bool offloaded = false, bool frozen = false) {
  models::BertConfig config = small_config(0.1);
  config.num_hidden_layers = layers;
  models::BertForMaskedLM model(config, 3);
  model.set_checkpoint_policy(parse_checkpoint_policy(policy));
  if (frozen)
    for (const char* part : {"bert.embeddings.", "bert.encoder.layer.0.attention.self."})
      model.set_trainable(part, false);
  model.random().set_step(7);
  std::vector<int64_t> ids, labels;
  constexpr int64_t batch = 8, length = 12;
  for (int64_t i = 0; i < batch * length; ++i) {
    ids.push_back(1 + i * 37 % 60);
    labels.push_back(i % 5 == 0 ? i * 11 % 61 : -100);
  }
  const models::TokenBatch tokens{.ids = from_values(ids, {batch, length}),
                                  .lengths = from_values(std::vector<int32_t>{12, 3, 7, 12, 1, 9, 12, 5}, {batch})};
  const int64_t before = memory_statistics(cpu).live[static_cast<size_t>(Category::activations)];
  std::optional<OffloadScope> offload;
  if (offloaded) offload.emplace(host, 0);
  const Tensor loss = cross_entropy(model(tokens), from_values(labels, {batch * length}));
  offload.reset();
  Outcome out;
  out.activation_bytes = memory_statistics(cpu).live[static_cast<size_t>(Category::activations)] - before;
  Counter counter;
  {
    const Scoped observer(&Mode::observer, static_cast<Observer*>(&counter));
    backward(loss);
  }
  out.runs_again = counter.runs;
  for (const optim::Parameter& parameter : model.parameters())
    if (const Tensor got = gradient(parameter.tensor)) out.gradients[parameter.name] = values(got);
  return out;
}

}  // namespace

TEST_CASE("every policy gives the same gradients bit for bit, and most keep less", "[checkpointing]") {
  const Outcome plain = bert_step("none");
  CHECK(plain.runs_again.count("linear") == 0);
  for (const char* policy : {"every:1", "every:3", "every:100", "sqrt", "selective:self_attention"}) {
    INFO(policy);
    const Outcome outcome = bert_step(policy);
    CHECK(outcome.gradients == plain.gradients);
    CHECK(outcome.activation_bytes < plain.activation_bytes);
  }
  const int64_t every = bert_step("every:1").activation_bytes, sqrt = bert_step("sqrt").activation_bytes,
                selective = bert_step("selective:self_attention").activation_bytes;
  CHECK(sqrt < every);
  CHECK(every < selective);
  CHECK(2 * every < plain.activation_bytes);
}

TEST_CASE("the inputs of segments are offloaded too: the same gradients with less memory than either",
          "[checkpointing]") {
  const Outcome plain = bert_step("none"), every = bert_step("every:1"), offloaded = bert_step("none", true),
                both = bert_step("every:1", true);
  CHECK(both.gradients == plain.gradients);
  CHECK(both.runs_again == every.runs_again);
  CHECK(both.activation_bytes < every.activation_bytes);
  CHECK(both.activation_bytes <= offloaded.activation_bytes);
}

TEST_CASE("selective checkpointing runs everything again but the kept ops", "[checkpointing]") {
  const Outcome every = bert_step("every:1"), selective = bert_step("selective:self_attention"),
                more = bert_step("selective:self_attention,linear");
  CHECK(every.runs_again.at("self_attention") == layers);
  CHECK(selective.runs_again.count("self_attention") == 0);
  CHECK(selective.runs_again.at("linear") == every.runs_again.at("linear"));
  CHECK(more.runs_again.count("self_attention") + more.runs_again.count("linear") == 0);
  CHECK(more.runs_again.at("residual_norm") == 2 * layers);
}

TEST_CASE("a segment runs again once, whatever asks for it", "[checkpointing]") {
  const Tensor x = leaf({0.5f, 2});
  int runs = 0;
  auto f = [&runs](const Tensor& in) {
    ++runs;
    return tanh(exp(in) * in);
  };
  const Tensor y = checkpoint(f, x);
  CHECK(runs == 1);
  backward(sum(y * y), {.retain_graph = true});
  CHECK(runs == 2);
  const std::vector<float> once = values(gradient(x));
  clear_gradient(x);
  backward(sum(y * y));
  CHECK(runs == 2);
  CHECK(values(gradient(x)) == once);
  clear_gradient(x);
  const Tensor plain = f(x);
  backward(sum(plain * plain));
  CHECK(values(gradient(x)) == once);
}

TEST_CASE("no segment without recording, and none inside another", "[checkpointing]") {
  const Tensor x = leaf({0.5f, 2});
  int inner = 0;
  auto g = [&inner](const Tensor& in) {
    ++inner;
    return exp(in);
  };
  {
    NoGrad off;
    CHECK(!tracked(checkpoint(g, x)));
  }
  CHECK(inner == 1);
  const Tensor y = checkpoint([&g](const Tensor& in) { return checkpoint(g, in * in) * in; }, x);
  backward(sum(y));
  CHECK(inner == 3);
  const std::vector<float> found = values(gradient(x));
  clear_gradient(x);
  backward(sum(exp(x * x) * x));
  CHECK(values(gradient(x)) == found);
}

TEST_CASE("the hook of a weight used inside and outside segments fires once, with the whole gradient",
          "[checkpointing]") {
  const Tensor w = leaf({0.5f, 2}), x = leaf({1, 3});
  auto f = [w](const Tensor& in) { return tanh(in * w) * w; };
  auto model = [&](auto wrap) { return sum(wrap(wrap(x * w)) * w); };
  std::vector<std::vector<float>> seen;
  w.slot->hooks.push_back([&](Tensor& gradient) { seen.push_back(values(gradient)); });
  backward(model(f));
  clear_gradient(w);
  backward(model([&](const Tensor& in) { return checkpoint(f, in); }));
  REQUIRE(seen.size() == 2);
  CHECK(seen[0] == seen[1]);
}

TEST_CASE("several inputs and outputs, some of them not on the tape", "[checkpointing]") {
  const Tensor x = leaf({1, 3}), weight = from_values(std::vector<float>{2, 5}, {2});
  auto f = [](std::span<const Tensor> in) { return std::vector<Tensor>{in[0] * in[1], exp(in[1]) + in[2], in[0]}; };
  const std::vector<Tensor> inputs{x * 1.0, weight, x};
  const std::vector<Tensor> y = checkpoint_segment(f, inputs);
  backward(sum(y[0] * y[0]) + sum(y[1] * y[2]));
  const std::vector<float> found = values(gradient(x));
  clear_gradient(x);
  const std::vector<Tensor> plain = f(std::vector<Tensor>{x * 1.0, weight, x});
  backward(sum(plain[0] * plain[0]) + sum(plain[1] * plain[2]));
  CHECK(found == values(gradient(x)));
}

TEST_CASE("a function that does not compute the same each time is found out", "[checkpointing]") {
  const Tensor x = leaf({1, 3});
  int runs = 0;
  auto message = [&](auto f, std::vector<std::string> keep = {}) {
    runs = 0;
    clear_gradient(x);
    const Tensor y = checkpoint_segment([f](std::span<const Tensor> in) { return std::vector<Tensor>{f(in[0])}; }, {x},
                                        std::move(keep))[0];
    const std::string first = error_of<ValueError>([&] { backward(sum(y), {.retain_graph = true}); });
    CHECK(first == error_of<ValueError>([&] { backward(sum(y)); }));  // and again
    INFO(first);
    CHECK(first.find("[checkpoint]") == 0);
    CHECK(first.find("the same each time") != std::string::npos);
    CHECK(first.find("checkpointing.cpp:") != std::string::npos);  // the op that needed the re-run
    return first;
  };
  CHECK(message([&runs](const Tensor& in) {
          return runs++ ? exp(exp(in)) : exp(in);
        }).find("it ran 1 ops, and now exp too") != std::string::npos);
  CHECK(message([&runs](const Tensor& in) {
          return runs++ ? exp(in) : exp(exp(in));
        }).find("it ran 2 ops, and now 1") != std::string::npos);
  CHECK(message([&runs](const Tensor& in) {  // which saves as much, of the same shape
          return runs++ ? tanh(in) : exp(in);
        })
            .find("its op 0 was exp, and now is tanh") != std::string::npos);
  CHECK(message([&runs, weight = leaf({1, 2})](const Tensor& in) {  // a leaf is its owner's
          const Tensor y = exp(in);
          return runs++ ? y * y : y * weight;
        })
            .find("saved 2 tensors, and now 3") != std::string::npos);
  CHECK(message([&runs](const Tensor& in) {
          return runs++ ? sum(exp(concat({in, in}, 0))) : sum(exp(concat({in, in, in}, 0)));
        }).find("f32[6], and now is f32[4]@cpu") != std::string::npos);
  CHECK(message([&runs](const Tensor& in) { return tanh(runs++ ? exp(exp(in)) : exp(in)); }, {"exp"})
            .find("its op 1 was tanh, and now is exp") != std::string::npos);
  clear_gradient(x);
  backward(sum(exp(x)));  // nothing of that is left behind
  CHECK(values(gradient(x)) == values(exp(detach(x))));
}

TEST_CASE("an input overwritten before backward is found out", "[checkpointing]") {
  const Tensor x = leaf({1, 3}), h = x * 2.0, y = sum(checkpoint([](const Tensor&in) { return exp(in); }, h));
  {
    NoGrad off;
    fill_(h, 0);
  }
  const std::string error = error_of<ValueError>([&] { backward(y); });
  CHECK(error.find("[checkpoint] what exp read in the segment, f32[2], was overwritten in place by fill_") == 0);
}

TEST_CASE("a captured tensor overwritten before backward is found out, a result of the segment is not",
          "[checkpointing]") {
  const Tensor x = leaf({1, 3}), bias = from_values(std::vector<float>{2, 5}, {2});
  auto f = [bias](std::span<const Tensor> in) {
    const Tensor h = in[0] + bias;  // saves nothing, yet what exp saves depends on the bias
    return std::vector<Tensor>{h, exp(h)};
  };
  auto run = [&](const Tensor& overwritten) {
    const std::vector<Tensor> y = checkpoint_segment(f, {x});
    {
      NoGrad off;
      fill_(overwritten ? overwritten : y[0], 1);
    }
    return error_of<ValueError>([&] { backward(sum(y[1])); });
  };
  const std::vector<float> slopes = values(exp(detach(x) + bias));
  CHECK(run({}) == "no error");
  CHECK(values(gradient(x)) == slopes);
  CHECK(run(bias).find("[checkpoint] what add read in the segment, f32[2], was overwritten in place by fill_") == 0);
}

TEST_CASE("an error inside a re-run leaves a tape that works", "[checkpointing]") {
  const Tensor x = leaf({1, 3});
  int runs = 0;
  const Tensor y = checkpoint(
      [&runs](const Tensor& in) {
        require(runs++ != 1, "test", Where(), "as told");
        return exp(in) * in;
      },
      x);
  CHECK(error_of<ValueError>([&] { backward(sum(y), {.retain_graph = true}); }) == "[test] as told");
  CHECK(mode().recording);
  CHECK(!mode().keeper);
  clear_gradient(x);
  backward(sum(y));
  const std::vector<float> found = values(gradient(x));
  clear_gradient(x);
  backward(sum(exp(x) * x));
  CHECK(found == values(gradient(x)));
}

TEST_CASE("a gradient of a gradient goes through a segment", "[checkpointing]") {
  const Tensor x = from_values(std::vector<double>{0.3, -0.7, 1.1, 0.2}, {2, 2}, reference),
               w = from_values(std::vector<double>{0.5, -0.4, 0.9, 0.8}, {2, 2}, reference);
  auto f = [](const std::vector<Tensor>& in) {
    auto part = [w = in[1]](const Tensor& h) { return linear(h, w, {}, kernels::Activation::gelu) * h; };
    return checkpoint(part, checkpoint(part, in[0]));
  };
  CHECK(gradcheck(f, {x, w}) < 1e-8);
  CHECK(second_gradcheck(f, {x, w}) < 1e-8);
}

TEST_CASE("dropout inside a segment draws the same mask again, or says why it cannot", "[checkpointing]") {
  const Random random(11);
  Tensor x = full({1000}, 1);
  require_gradient(x);
  auto f = [&random](const Tensor& in) { return dropout(in * in, random.site("here", 0.5)); };
  const Tensor y = checkpoint(f, x);
  backward(sum(y));
  const std::vector<float> mask = values(y), slopes = values(gradient(x));
  int dropped = 0;
  for (size_t i = 0; i < mask.size(); ++i) {
    REQUIRE(slopes[i] == 2 * mask[i]);
    dropped += mask[i] == 0;
  }
  CHECK((dropped > 400 && dropped < 600));
  Random moving(11);
  const Tensor z = sum(checkpoint([&](const Tensor& in) { return dropout(in, moving.site("here", 0.5)); }, x * 1.0));
  moving.set_step(1);
  CHECK(error_of<ValueError>([&] { backward(z); }).find("between forward and backward") != std::string::npos);
}

TEST_CASE("an op to be kept that never runs is refused, with those that do", "[checkpointing]") {
  const std::string error = error_of<ValueError>([] { bert_step("selective:self_attention,gleu"); });
  CHECK(error.find("no op 'gleu' to keep runs in the segment; those that do: ") != std::string::npos);
  CHECK(error.find("self_attention") != std::string::npos);
  // One that ran inside another op is on no tape, and nothing could be kept of it.
  const auto inner = [](std::span<const Tensor> in) { return std::vector<Tensor>{softmax(transpose(in[0], 0, 1))}; };
  Tensor x = full({3, 4}, 1.0);
  require_gradient(x);
  CHECK(error_of<ValueError>([&] { checkpoint_segment(inner, {x}, {"contiguous"}, Where()); }).find("'contiguous'") !=
        std::string::npos);
}

TEST_CASE("an op to be kept may run where nothing is trained", "[checkpointing]") {
  const Outcome plain = bert_step("none", false, true), selective = bert_step("selective:self_attention", false, true);
  CHECK(selective.gradients == plain.gradients);
  CHECK(selective.runs_again.at("self_attention") == 1);  // of the frozen layer, whose tape has nothing to keep it on
}

TEST_CASE("policies are read from text", "[checkpointing]") {
  CHECK(parse_checkpoint_policy("none").kind == CheckpointPolicy::none);
  CHECK(parse_checkpoint_policy("sqrt").kind == CheckpointPolicy::sqrt);
  CHECK(parse_checkpoint_policy("every:3").layers == 3);
  CHECK(parse_checkpoint_policy("selective:linear,gelu").keep_ops == std::vector<std::string>{"linear", "gelu"});
  for (const char* text :
       {"", "None", "every", "every:", "every:0", "every:-1", "every:2x", "every:99999999999", "sqrt:2",
        "none:", "selective", "selective:", "selective:,", "selective:a,,b", "selective:a,"}) {
    INFO(text);
    const std::string error = error_of<ValueError>([&] { parse_checkpoint_policy(text); });
    CHECK(error.find("a policy is none, sqrt, every:N or selective:op,op; given '" + std::string(text) + "'") !=
          std::string::npos);
    CHECK(error.find("checkpointing.cpp") != std::string::npos);
  }
}
