// Samples laid end to end: the layout, the same logits, losses and gradients as with padding, on every device and for
// each head, and what composes with it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/data/packing.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"
#include "cinta/train/token_batch.h"
#include "command_helpers.h"
#include "train_helpers.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

constexpr int64_t samples = 4, length = 12;

/// Four samples of 12, 5, 1 and 8 tokens in pairs, with two rows to guess in each but the third.
data::Batch padded() {
  data::Batch out;
  out.lengths = {12, 5, 1, 8};
  for (int64_t b = 0; b < samples; ++b)
    for (int64_t i = 0; i < length; ++i) {
      const bool there = i < out.lengths[static_cast<size_t>(b)];
      out.ids.push_back(there ? 1 + (b * 17 + i * 7) % 60 : 0);
      out.types.push_back(there && i > 2);
    }
  out.rows = {3, 7, length + 1, length + 4, 2 * length, 2 * length, 3 * length, 3 * length + 6};
  out.labels = {5, 9, 60, 1, -100, -100, 8, 33};
  out.kinds = {1, 0, -100, 1};
  return out;
}

struct Found {
  std::vector<double> logits;
  double loss;
  std::map<std::string, Tensor> gradients;
};

/// One forward and backward of a model whose `loss(model, tokens, batch)` gives logits and a sum.
template <class Model, class Loss>
Found run(const data::Batch& batch, Device device, Loss loss) {
  Model model(small_config(), 3, device);
  const auto [logits, sum] = loss(model, train::token_batch(batch, device), batch);
  autograd::backward(sum);
  return {to_vector<double>(logits), item(sum), gradients(model)};
}

void check_same(const Found& found, const Found& expected, double rounding) {
  CHECK(found.logits == expected.logits);  // every row is the same sums
  CHECK(found.loss == Approx(expected.loss).epsilon(rounding));
  REQUIRE(found.logits.size() == expected.logits.size());
  for (size_t i = 0; i < found.logits.size(); ++i)
    CHECK(std::abs(found.logits[i] - expected.logits[i]) <= rounding * (1 + std::abs(expected.logits[i])));
  for (const auto& [name, gradient] : expected.gradients) {
    INFO(name);
    const std::vector<double> a = to_vector<double>(found.gradients.at(name)), b = to_vector<double>(gradient);
    double largest = 0;
    for (double value : b) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < b.size(); ++i) REQUIRE(std::abs(a[i] - b[i]) <= rounding * (largest + 1));
  }
}

Tensor labels_of(const std::vector<int64_t>& labels, Device device) {
  return from_values(labels, {static_cast<int64_t>(labels.size())}, device);
}

}  // namespace

TEST_CASE("packed samples lie end to end", "[padding_free]") {
  const data::Batch batch = padded(), out = data::packed(batch, 16);
  CHECK(out.offsets == std::vector<int32_t>{0, 12, 17, 18, 26});
  REQUIRE(out.ids.size() == 32);  // to the next multiple of 16
  REQUIRE(out.types.size() == 32);
  REQUIRE(out.places.size() == 32);
  size_t at = 0;
  for (size_t b = 0; b < samples; ++b)
    for (int32_t i = 0; i < batch.lengths[b]; ++i, ++at) {
      CHECK(out.ids[at] == batch.ids[b * length + static_cast<size_t>(i)]);
      CHECK(out.types[at] == batch.types[b * length + static_cast<size_t>(i)]);
      CHECK(out.places[at] == i);
    }
  CHECK(out.rows == std::vector<int64_t>{3, 7, 13, 16, 17, 17, 18, 24});
  CHECK(out.labels == batch.labels);
  CHECK(out.lengths == batch.lengths);
  CHECK(out.kinds == batch.kinds);
  CHECK(data::packed(batch, 13).ids.size() == 26);
  CHECK_THROWS_AS(data::packed(out), ValueError);
  CHECK_THROWS_AS(data::packed(data::Batch{}), ValueError);
  CHECK_THROWS_AS(data::packed(batch, 0), ValueError);
}

TEST_CASE("batches that cannot be packed", "[padding_free]") {
  const auto spoilt = [](auto&& spoil) {
    data::Batch out = padded();
    spoil(out);
    return out;
  };
  const auto refused = [&](const char* why, auto&& spoil) {
    CHECK_THROWS_WITH(data::packed(spoilt(spoil)), Catch::Contains("packed") && Catch::Contains(why));
  };
  refused("given 0 in sample 1", [](data::Batch& b) { b.lengths[1] = 0; });
  refused("given -1 in sample 3", [](data::Batch& b) { b.lengths[3] = -1; });
  refused("given 13 in sample 0", [](data::Batch& b) { b.lengths[0] = length + 1; });
  refused("given 4 samples, 47 ids", [](data::Batch& b) { b.ids.pop_back(); });
  refused("47 types", [](data::Batch& b) { b.types.pop_back(); });
  refused("given 0 in sample 0", [](data::Batch& b) { b.ids.clear(), b.types.clear(), b.lengths.assign(4, 0); });
  for (const int64_t row : {int64_t{-1}, length + 5, 4 * length, int64_t{1} << 40})  // of sample 1 there are 5 tokens
    refused("rows of tokens that are no padding", [&](data::Batch& b) { b.rows[0] = row; });
  CHECK_THROWS_WITH(train::token_batch(data::Batch{}, cpu),
                    Catch::Contains("token_batch") && Catch::Contains("given 0 samples"));
  CHECK_THROWS_WITH(train::token_batch(spoilt([](data::Batch& b) { b.ids.pop_back(); }), cpu),
                    Catch::Contains("47 ids"));
}

TEST_CASE("a BERT without padding computes what it computes with it", "[padding_free]") {
  for (Device device : {cpu, reference}) {
    const data::Batch with = padded(), without = data::packed(with, 16);
    const double rounding = device == reference ? 1e-12 : 256 * 0x1p-24;
    const auto masked = [&](auto& model, const models::TokenBatch& tokens, const data::Batch& batch) {
      const Tensor logits = model(tokens, labels_of(batch.rows, device));
      return std::pair{logits, cross_entropy(logits, labels_of(batch.labels, device), {.reduction = Reduction::sum})};
    };
    check_same(run<models::BertForMaskedLM>(without, device, masked),
               run<models::BertForMaskedLM>(with, device, masked), rounding);
    const auto both = [&](auto& model, const models::TokenBatch& tokens, const data::Batch& batch) {
      const auto out = model(tokens, labels_of(batch.rows, device));
      return std::pair{
          out.next_sentence,
          cross_entropy(out.masked, labels_of(batch.labels, device), {.reduction = Reduction::sum}) +
              cross_entropy(out.next_sentence, labels_of(batch.kinds, device), {.reduction = Reduction::sum})};
    };
    check_same(run<models::BertForPreTraining>(without, device, both),
               run<models::BertForPreTraining>(with, device, both), rounding);
    const auto classes = [&](auto& model, const models::TokenBatch& tokens, const data::Batch&) {
      const Tensor logits = model(tokens);
      return std::pair{logits, cross_entropy(logits, labels_of({0, 2, 1, 1}, device), {.reduction = Reduction::sum})};
    };
    check_same(run<models::BertForSequenceClassification>(without, device, classes),
               run<models::BertForSequenceClassification>(with, device, classes), rounding);
  }
}

TEST_CASE("a training without padding has the losses of one with it", "[padding_free]") {
  const auto losses = [](bool padding_free, double dropout, const std::string& checkpointing) {
    auto task = small_masked(dropout);
    task.compute_without_padding(padding_free);
    task.model().set_checkpoint_policy(autograd::parse_checkpoint_policy(checkpointing));
    train::RunOptions options = small_run("");
    options.max_steps = 12;
    options.logging_steps = 1;
    options.accumulation_steps = 2;
    struct Losses : train::TrainerCallback {
      void on_log(const train::Moment&, const train::MetricFields& fields) override {
        all.push_back(train::number(fields, "loss"));
      }
      std::vector<double> all;
    };
    const auto kept = std::make_shared<Losses>();
    options.callbacks.push_back(kept);
    kept->all.push_back(train::number(train::run(task, options, {}).evaluation, "eval_loss"));
    return kept->all;
  };
  const std::vector<double> with = losses(false, 0, "none"), without = losses(true, 0, "none");
  REQUIRE(with.size() == 13);
  REQUIRE(without.size() == with.size());
  for (size_t i = 0; i < with.size(); ++i) CHECK(without[i] == Approx(with[i]).epsilon(1e-4));
  CHECK(losses(true, 0.1, "every:1") == losses(true, 0.1, "none"));
  CHECK(losses(true, 0.1, "none") != without);
}

TEST_CASE("offsets without places are refused", "[padding_free]") {
  const models::BertForMaskedLM model(small_config(), 3);
  models::TokenBatch tokens = train::token_batch(data::packed(padded()), cpu);
  tokens.places = {};
  CHECK_THROWS_WITH(model(tokens), Catch::Contains("[bert] offsets and places are given together"));
}

TEST_CASE("cinta trains without padding, and goes on without", "[padding_free]") {
  const Scratch scratch;
  const std::string text = write_texts(scratch, "text", "value_");
  const auto bert = [&](const std::string& directory, const std::string& steps, const Arguments& more) {
    return run_cinta(Arguments{"train",
                               "bert",
                               "--data",
                               text,
                               "--output_dir",
                               directory,
                               "--sequence_length",
                               "32",
                               "--vocab_size",
                               "160",
                               "--batch_size",
                               "2",
                               "--max_steps",
                               steps,
                               "--threads",
                               "1",
                               "--dropout",
                               "0.1",
                               "--next_sentence",
                               "--quiet",
                               "--lr_scheduler_type",
                               "constant"} +
                     more);
  };
  const Arguments without{"--padding_free"};
  REQUIRE(bert(scratch / "whole", "8", without).code == 0);
  REQUIRE(bert(scratch / "parts", "3", without).code == 0);
  REQUIRE(bert(scratch / "parts", "8", without + Arguments{"--resume"}).code == 0);
  CHECK(read_bytes(scratch / "parts/model.safetensors") == read_bytes(scratch / "whole/model.safetensors"));
  const Finished other = bert(scratch / "parts", "9", {"--resume"});
  CHECK(other.code == 2);
  CHECK(other.error.find("padding_free") != std::string::npos);

  write_bytes(scratch / "lines.csv",
              "text,label\nint a;,0\nfloat b = 2 * c;,1\nint c;,0\nfloat d;,1\nint e = 4;,0\nfloat f;,1\n");
  const auto classify = [&](const std::string& directory, const Arguments& more) {
    return run_cinta(Arguments{"train", "classify", "--data", scratch / "lines.csv", "--vocab_size", "60",
                               "--sequence_length", "16", "--threads", "1", "--max_steps", "5", "--dropout", "0",
                               "--quiet", "--output_dir", directory} +
                     more);
  };
  REQUIRE(classify(scratch / "with", {}).code == 0);
  REQUIRE(classify(scratch / "without", without).code == 0);
  const auto loss = [&](const std::string& directory) {
    return train::number(train::read_metrics(directory + "/metrics.jsonl").records.back().fields, "eval_loss");
  };
  CHECK(loss(scratch / "without") == Approx(loss(scratch / "with")).epsilon(1e-4));
}
