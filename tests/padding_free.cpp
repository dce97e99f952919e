// Samples laid end to end: the layout, the same logits, losses and gradients as with padding, on every device and for
// each head, what composes with it, and batches of about as many tokens.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "cinta/data/packing.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"
#include "cinta/train/text_classify_task.h"
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

/// Ten batches: an epoch of 40 samples in batches of four, and so a window.
constexpr int64_t epoch_steps = 10;

/// By how many tokens the batches of an epoch differ.
int64_t spread(const data::BatchSource& source, int64_t epoch) {
  std::vector<int64_t> tokens;
  for (int64_t step = epoch * epoch_steps; step < (epoch + 1) * epoch_steps; ++step) {
    const std::vector<int32_t> lengths = source.batch(step).lengths;
    tokens.push_back(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}));
  }
  return std::ranges::max(tokens) - std::ranges::min(tokens);
}

/// The tokens, the labels and the length of each sample of an epoch.
std::multiset<std::vector<int64_t>> samples_of(const data::BatchSource& source, int64_t epoch) {
  std::multiset<std::vector<int64_t>> out;
  for (int64_t step = epoch * epoch_steps; step < (epoch + 1) * epoch_steps; ++step) {
    const data::Batch batch = source.batch(step);
    REQUIRE(batch.lengths.size() == 4);
    const size_t ids = batch.ids.size() / 4, labels = batch.labels.size() / 4;
    for (size_t b = 0; b < 4; ++b) {
      std::vector<int64_t> one(batch.ids.begin() + long(b * ids), batch.ids.begin() + long((b + 1) * ids));
      one.insert(one.end(), batch.labels.begin() + long(b * labels), batch.labels.begin() + long((b + 1) * labels));
      one.push_back(batch.lengths[b]);
      out.insert(one);
    }
  }
  return out;
}

/// The same samples in both, in batches that differ by at most `between` tokens in one alone.
void check_balanced(const data::BatchSource& balanced, const data::BatchSource& plain, int64_t between) {
  int64_t widest = 0;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    CHECK(samples_of(balanced, epoch) == samples_of(plain, epoch));
    CHECK(spread(balanced, epoch) <= between);
    widest = std::max(widest, spread(plain, epoch));
  }
  CHECK(widest > between);
  CHECK(balanced.epoch(epoch_steps) == 1);
  data::Prefetcher ahead(balanced, 7);  // from the middle of a window to the middle of the next but one
  for (int64_t step = 7; step < 25; ++step) CHECK(ahead.next() == balanced.batch(step));
}

/// A short training of a BERT on write_texts().
Finished train_bert(const std::string& text, const std::string& directory, const std::string& steps,
                    const Arguments& more) {
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
                             "--quiet",
                             "--lr_scheduler_type",
                             "constant"} +
                   more);
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
  CHECK(data::packed(batch).ids.size() == 32);
  CHECK_THROWS_AS(data::packed(out), ValueError);
  CHECK_THROWS_AS(data::packed(data::Batch{}), ValueError);
  for (const int64_t multiple : {int64_t{0}, int64_t{-1}, int64_t{1} << 31, std::numeric_limits<int64_t>::max()})
    CHECK_THROWS_WITH(
        data::packed(batch, multiple),
        Catch::Contains("packed") && Catch::Contains(join("multiple lies in [1, 2147483647], given ", multiple)));
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
    return train_bert(text, directory, steps, Arguments{"--next_sentence"} + more);
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

TEST_CASE("tasks train on batches of about as many tokens", "[padding_free]") {
  constexpr data::Balance tokens = data::Balance::tokens;
  const data::MaskedCorpus& corpus = small_corpus();  // of 5 to 12 tokens
  const train::MaskedTask plain = small_masked();
  const train::MaskedTask balanced(corpus, small_config(), 4, 9, cpu, Where::current(), tokens);
  check_balanced(balanced.batches(), plain.batches(), 12 - 5);

  data::LabelledText text;
  for (int i = 0; i < 40; ++i) {
    text.first.push_back("a");
    for (int more = 0; more < i * 7 % 9; ++more) text.first.back() += " b";
    text.labels.push_back(i % 2 == 0 ? "no" : "yes");
  }
  models::BertConfig config = small_config();
  config.label_names = {"no", "yes"};
  const data::WordPiece tokenizer(letters());
  const data::ClassifiedSequences sequences = encode(text, tokenizer, config.label_names, 12);
  const train::TextClassifyData both{tokenizer, sequences, sequences};
  const train::TextClassifyTask classifier(both, config, 4, 3);
  const train::TextClassifyTask balanced_classifier(both, config, 4, 3, cpu, Where::current(), tokens);
  check_balanced(balanced_classifier.batches(), classifier.batches(), 11 - 3);

  const data::Masker masker(corpus.tokenizer.vocabulary(), 9);
  CHECK_THROWS_WITH(data::MaskedBatches(corpus.held_out, masker, 4, 9, data::Walk::in_order, Where::current(), tokens),
                    Catch::Contains("[masked_batches] batches of about as many tokens are for shuffled sequences"));
}

TEST_CASE("cinta trains on batches of about as many tokens, and goes on with them", "[padding_free]") {
  const Scratch scratch;
  const std::string text = write_texts(scratch, "text", "value_");
  const Arguments plain{"--padding_free"}, balanced{"--padding_free", "--balance_lengths"};
  const auto model = [&](const std::string& name) { return read_bytes(scratch / (name + "/model.safetensors")); };
  const auto recorded = [&](const std::string& name) {
    return holds(scratch / (name + "/metrics.jsonl"), "\"balance_lengths\":true");
  };
  REQUIRE(train_bert(text, scratch / "plain", "8", plain).code == 0);
  REQUIRE(train_bert(text, scratch / "whole", "8", balanced).code == 0);
  REQUIRE(train_bert(text, scratch / "parts", "3", balanced).code == 0);
  REQUIRE(train_bert(text, scratch / "parts", "8", balanced + Arguments{"--resume"}).code == 0);
  CHECK(model("parts") == model("whole"));
  CHECK(model("plain") != model("whole"));
  CHECK(recorded("whole"));
  CHECK(!recorded("plain"));
  const Finished other = train_bert(text, scratch / "parts", "9", plain + Arguments{"--resume"});
  CHECK(other.code == 2);
  CHECK(other.error.find("balance_lengths") != std::string::npos);

  std::string csv = "text,label\n";
  for (int i = 0; i < 40; ++i) {
    csv += "int a";
    for (int more = 0; more < i * 7 % 9; ++more) csv += " + b";
    csv += i % 2 == 0 ? ";,0\n" : ";,1\n";
  }
  write_bytes(scratch / "lines.csv", csv);
  const auto classify = [&](const std::string& name, const Arguments& more) {
    return run_cinta(Arguments{"train", "classify", "--data", scratch / "lines.csv", "--vocab_size", "60",
                               "--sequence_length", "32", "--batch_size", "4", "--threads", "1", "--max_steps", "5",
                               "--quiet", "--output_dir", scratch / name} +
                     more);
  };
  REQUIRE(classify("classify_plain", plain).code == 0);
  REQUIRE(classify("classify", balanced).code == 0);
  CHECK(model("classify") != model("classify_plain"));
  CHECK(recorded("classify"));
  {
    const Variable variable("CINTA_BALANCE_LENGTHS", "true");  // speaks to every command, also where it has no effect
    REQUIRE(train_bert(text, scratch / "padded", "1", {}).code == 0);
    REQUIRE(train_bert(text, scratch / "pairs", "1", {"--padding_free", "--next_sentence"}).code == 0);
    REQUIRE(classify("classify_padded", {}).code == 0);
  }
  for (const char* name : {"padded", "pairs", "classify_padded"}) CHECK(!recorded(name));
}
