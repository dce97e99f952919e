// A whole BERT against transformers (tests/interop/bert.py): logits, loss, every gradient and ten steps of AdamW, for
// each head, on every device there is. The golden numbers are float64, so the tolerances are our own rounding's: a few
// hundred f32 operations deep.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "bert_helpers.h"
#include "cinta/autograd/tape.h"
#include "cinta/models/model_file.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/embedding.h"
#include "cinta/ops/loss.h"
#include "cinta/optim/adamw.h"
#include "cinta/optim/schedule.h"

using namespace cinta;
using namespace cinta::models;
using cinta::testing::gradients;
using cinta::testing::read_tensors;
using cinta::testing::small_config;

namespace {

const std::string folder = CINTA_SOURCE_DIR "/tests/golden/bert_";

struct Result {
  std::map<std::string, Tensor> logits;
  Tensor loss;
};

/// Largest difference, and the largest value expected.
struct Distance {
  double worst = 0, scale = 0;
};

Distance distance(const Tensor& found, const Tensor& expected) {
  REQUIRE(found.shape() == expected.shape());
  const std::vector<double> left = to_vector<double>(found), right = to_vector<double>(expected);
  Distance out;
  for (size_t i = 0; i < left.size(); ++i) {
    const double apart = std::abs(left[i] - right[i]);
    out.worst = apart <= out.worst ? out.worst : apart;  // NaN is worst
    out.scale = std::max(out.scale, std::abs(right[i]));
  }
  return out;
}

/// Checks one head: `forward(inputs of a step)` is what differs between heads.
template <class Model, class Forward>
void check_head(const std::string& name, Device device, Forward forward, const BertConfig& config = small_config(),
                const std::string& weights = "weights") {
  const std::map<std::string, Tensor> golden = read_tensors(folder + name + ".safetensors", device);
  Model model(config, 1, device);
  const LoadReport report = load_weights(model, folder + weights + ".safetensors");
  CHECK(report.missing.empty());
  auto inputs = [&](int64_t step) {
    std::map<std::string, Tensor> out;
    for (const char* key : {"ids", "types", "lengths", "rows", "labels", "next_sentence", "classes"})
      out[key] = contiguous(squeeze(slice(golden.at(key), 0, step, step + 1), 0));
    return out;
  };

  const Result first = forward(model, inputs(0));
  CHECK(distance(reshape(first.loss, {1}), golden.at("loss")).worst < 1e-5);
  const std::vector<int64_t> ids = to_vector<int64_t>(inputs(0)["ids"]);
  for (const auto& [key, logits] : first.logits) {
    INFO(key);
    Tensor found = logits, expected = golden.at(key);
    if (expected.rank() == 3) {  // what stands in padding is defined by nobody
      std::vector<int64_t> real;
      for (size_t i = 0; i < ids.size(); ++i)
        if (ids[i] != 0) real.push_back(static_cast<int64_t>(i));
      const Tensor rows = from_values(real, {static_cast<int64_t>(real.size())}, device);
      REQUIRE(real.size() < ids.size());
      found = gather_rows(reshape(found, {-1, expected.size(-1)}), rows);
      expected = gather_rows(reshape(expected, {-1, expected.size(-1)}), rows);
    }
    const Distance apart = distance(found, expected);
    CHECK(apart.worst < 1e-5);
    CHECK(apart.scale > 0.1);
  }

  autograd::backward(first.loss);
  size_t count = 0;
  for (const auto& [key, gradient] : gradients(model)) {
    INFO(key);
    const Distance apart = distance(gradient, golden.at("gradient." + key));
    // The gradient of a key's bias is 0: softmax does not see what all keys share. What is left there is rounding.
    const double scale = key.ends_with("key.bias") ? 0.1 : apart.scale;
    CHECK(apart.worst < 1e-5 * scale);
    ++count;
  }
  size_t expected_count = 0;
  for (const auto& [key, tensor] : golden) expected_count += key.starts_with("gradient.");
  CHECK(count == expected_count);

  optim::AdamW optimizer(model.parameters(), {.rate = 2e-3, .eps = 1e-6, .weight_decay = 0.1});
  const optim::Schedule schedule{.kind = optim::ScheduleKind::linear, .warmup = 3, .total = 12};
  const std::vector<double> losses = to_vector<double>(golden.at("losses")),
                            norms = to_vector<double>(golden.at("norms"));
  for (int64_t step = 0; step < 10; ++step) {
    optimizer.zero_gradients();
    const Result result = forward(model, inputs(step));
    autograd::backward(result.loss);
    const Tensor norm = optimizer.step({.rate_factor = rate_factor(schedule, step), .max_norm = 1.0});
    INFO("step " << step);
    CHECK(item(result.loss) == Approx(losses[static_cast<size_t>(step)]).epsilon(1e-5));
    CHECK(item(norm) == Approx(norms[static_cast<size_t>(step)]).epsilon(1e-5));
  }
  if (!golden.contains("after." + model.named_tensors().front().name)) return;
  count = 0;
  for (const NamedTensor& named : model.named_tensors()) {
    INFO(named.name);
    // Adam divides by the size of the gradient, so a gradient that is rounding alone still moves its weight, by up to
    // gradient / eps of the rate: the tolerance is a part in 300 of the ten steps' way.
    CHECK(distance(named.tensor, golden.at("after." + named.name)).worst < 5e-5);
    ++count;
  }
  CHECK(count == expected_count);
}

/// As check_head() makes a model: with a pooler.
struct Headless : BertWithoutHead {
  Headless(const BertConfig& config, uint64_t seed, Device device) : BertWithoutHead(config, true, seed, device) {}
};

Result masked(BertForMaskedLM& model, std::map<std::string, Tensor> in) {
  const TokenBatch batch{in["ids"], in["types"], in["lengths"]};
  return {{{"logits", model(batch)}}, cross_entropy(model(batch, in["rows"]), in["labels"])};
}

std::vector<Device> devices() { return {reference, cpu}; }

}  // namespace

TEST_CASE("bert with the masked-language head equals transformers", "[bert]") {
  for (const Device device : devices()) {
    INFO(name_of(device));
    check_head<BertForMaskedLM>("masked", device, masked);
  }
}

TEST_CASE("bert with a head of 64, as all named sizes have, equals transformers", "[bert]") {
  BertConfig config = small_config();
  config.hidden_size = 64;
  config.num_hidden_layers = config.num_attention_heads = 1;
  config.intermediate_size = 32;
  for (const Device device : devices()) {
    INFO(name_of(device));
    check_head<BertForMaskedLM>("head64", device, masked, config, "head64_weights");
  }
}

TEST_CASE("bert with both pretraining heads equals transformers", "[bert]") {
  for (const Device device : devices()) {
    INFO(name_of(device));
    check_head<BertForPreTraining>("pretraining", device, [](auto& model, std::map<std::string, Tensor> in) {
      const TokenBatch batch{in["ids"], in["types"], in["lengths"]};
      const auto out = model(batch, in["rows"]);
      return Result{{{"logits", model(batch).masked}, {"next_sentence_logits", out.next_sentence}},
                    cross_entropy(out.masked, in["labels"]) + cross_entropy(out.next_sentence, in["next_sentence"])};
    });
  }
}

TEST_CASE("bert without a head equals transformers' BertModel", "[bert]") {
  for (const Device device : devices()) {
    INFO(name_of(device));
    check_head<Headless>("bare", device, [](const BertWithoutHead& model, std::map<std::string, Tensor> in) {
      const auto [hidden, pooled] = model({in["ids"], in["types"], in["lengths"]});
      const Tensor second = squeeze(slice(hidden, 1, 1, 2), 1);
      return Result{{{"last_hidden_state", hidden}, {"pooler_output", pooled}},
                    cross_entropy(pooled, in["classes"]) + cross_entropy(second, in["next_sentence"])};
    });
  }
}

TEST_CASE("bert with the classification head equals transformers", "[bert]") {
  for (const Device device : devices()) {
    INFO(name_of(device));
    check_head<BertForSequenceClassification>("classify", device, [](auto& model, std::map<std::string, Tensor> in) {
      const Tensor logits = model({in["ids"], in["types"], in["lengths"]});
      return Result{{{"logits", logits}}, cross_entropy(logits, in["classes"])};
    });
  }
}
