// A BERT under autocast: what a step keeps, what its gradients are, and that recomputed ones are those that were
// stored.
#include <catch2/catch.hpp>
#include <cmath>

#include "autocast_helpers.h"
#include "bert_helpers.h"
#include "cinta/autograd/checkpoint.h"
#include "cinta/core/context.h"
#include "cinta/ops/loss.h"
#include "cinta/optim/adamw.h"

using namespace cinta;
using namespace cinta::autograd;
using namespace cinta::testing;

namespace {

struct Step {
  double loss;
  std::map<std::string, std::vector<float>> gradients;
  int64_t activation_bytes;  // alive between forward and backward
};

/// A step of a BERT with dropout, with or without autocast; its weights and data are always the same.
Step bert_step(std::optional<Autocast> types, const std::string& policy, int micro_batches = 1) {
  models::BertConfig config = small_config(0.1);
  config.num_hidden_layers = 4;
  config.hidden_size = 32;
  models::BertForMaskedLM model(config, 3);
  model.set_checkpoint_policy(parse_checkpoint_policy(policy));
  optim::AdamW optimizer(model.parameters());
  if (types) optimizer.keep_shadows(types->low);
  optimizer.zero_gradients();
  Step out{};
  for (int batch = 0; batch < micro_batches; ++batch) {
    model.random().set_step(batch);
    std::vector<int64_t> ids, labels;
    for (int64_t i = 0; i < 8 * 12; ++i) {
      ids.push_back(1 + (i * 37 + batch) % 60);
      labels.push_back(i % 5 == 0 ? i * 11 % 61 : -100);
    }
    const models::TokenBatch tokens{.ids = from_values(ids, {8, 12})};
    const Tensor targets = from_values(labels, {8 * 12});
    const auto alive = [] { return memory_statistics(cpu).live[static_cast<size_t>(Category::activations)]; };
    const int64_t before = alive();
    Tensor loss;
    {
      const AutocastScope scope(types);
      loss = cross_entropy(model(tokens), targets);
    }
    out.activation_bytes = alive() - before;
    out.loss += item(loss);
    backward(loss);  // outside: what a segment runs again is as it was
  }
  for (const auto& [name, gradient] : gradients(model)) out.gradients[name] = values(gradient);
  return out;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
  return aa == 0 && bb == 0 ? 1 : ab / std::sqrt(aa * bb);
}

}  // namespace

TEST_CASE("a BERT in low precision: half the activations, the same gradients nearly, recomputed bit for bit",
          "[autocast]") {
  for (int micro_batches : {1, 4}) {
    const Step wide = bert_step({}, "none", micro_batches);
    for (const Autocast& types : {bf16_scope, f16_scope}) {
      INFO(name_of(types.low) << ", " << micro_batches << " micro-batches");
      const Step low = bert_step(types, "none", micro_batches);
      CHECK(low.loss != wide.loss);
      CHECK(std::abs(low.loss - wide.loss) < 0.02 * micro_batches);
      for (const auto& [name, gradient] : wide.gradients) {
        INFO(name);
        if (name.find("key.bias") == std::string::npos)  // 0 but for rounding: softmax does not see a shift
          CHECK(cosine(gradient, low.gradients.at(name)) > 0.98);
      }
      CHECK(static_cast<double>(low.activation_bytes) <= 0.55 * static_cast<double>(wide.activation_bytes));
      for (const char* policy : {"every:1", "sqrt", "selective:self_attention"}) {
        INFO(policy);
        const Step again = bert_step(types, policy, micro_batches);
        CHECK(again.loss == low.loss);
        CHECK(again.gradients == low.gradients);
      }
    }
  }
}

TEST_CASE("modules of another policy have it when they are run again", "[autocast]") {
  for (const auto& [module, policy] : {std::pair{"bert.encoder.layer.1", CastPolicy::wide},
                                       {"bert", CastPolicy::wide},
                                       {"bert.encoder.layer.0", CastPolicy::low}}) {
    const Autocast types{.modules = {{module, policy}}};
    const Step stored = bert_step(types, "none"), again = bert_step(types, "every:1");
    CHECK(again.loss == stored.loss);
    CHECK(again.gradients == stored.gradients);
  }
}

TEST_CASE("no pass of a classifier's step in low precision only casts", "[autocast]") {
  models::BertConfig config = small_config(0.1);
  config.num_labels = 3;
  const models::BertForSequenceClassification model(config, 3);
  Casts casts;
  const Scoped watching(&Mode::observer, static_cast<Observer*>(&casts));
  const Tensor loss = [&] {
    const AutocastScope scope(bf16_scope);
    return cross_entropy(model({.ids = full({4, 12}, 5, Dtype::i64)}), full({4}, 1, Dtype::i64));
  }();
  backward(loss);
  CHECK(casts.count == 0);
}

TEST_CASE("a warm step in low precision casts no weight and asks the machine for no memory", "[autocast]") {
  const ThreadScope one(1);
  models::BertForMaskedLM model(small_config(0.1), 3);
  optim::AdamW optimizer(model.parameters());
  optimizer.keep_shadows(Dtype::bf16);
  const models::TokenBatch tokens{.ids = full({4, 12}, 5, Dtype::i64)};
  const Tensor labels = full({4 * 12}, 7, Dtype::i64);
  Casts casts;
  const auto step = [&](int number) {
    optimizer.zero_gradients();
    model.random().set_step(number);
    const Tensor loss = [&] {
      const AutocastScope scope(bf16_scope);
      return cross_entropy(model(tokens), labels);
    }();
    backward(loss);
    optimizer.step({.max_norm = 1});
  };
  step(0);
  step(1);
  const auto versions = [&] {
    std::vector<uint32_t> out;
    for (const optim::Parameter& parameter : model.parameters())
      out.push_back(parameter.tensor.storage()->shadow.storage->version());
    return out;
  };
  const std::vector<uint32_t> before = versions();
  const MemoryStatistics warm = memory_statistics(cpu);
  const Scoped watching(&Mode::observer, static_cast<Observer*>(&casts));
  step(2);
  CHECK(memory_statistics(cpu).system_requests == warm.system_requests);
  CHECK(casts.count == 0);
  const std::vector<uint32_t> after = versions();
  for (size_t i = 0; i < after.size(); ++i) CHECK(after[i] == before[i] + 1);  // by the sweep alone
}
