// Pre-training with both heads: what its loss is, that accumulation does not change it, that it learns what follows.
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/autograd/tape.h"
#include "cinta/optim/accumulation.h"
#include "cinta/train/callbacks.h"
#include "cinta/train/pretraining_task.h"
#include "data_helpers.h"
#include "train_helpers.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

constexpr int64_t pair_length = 19;

/// Documents each of which walks through the alphabet in steps of its own, so that what follows can be told.
const data::MaskedCorpus& walks() {
  static const data::MaskedCorpus corpus = [] {
    const data::WordPiece tokenizer(letters());
    const auto part = [&](int begin, int end) {
      std::vector<data::Document> documents;
      for (int number = begin; number < end; ++number) {
        std::string text;
        for (int i = 0; i < 40; ++i) text += std::string(1, static_cast<char>('a' + number % 5 * 5 + i % 5)) + " ";
        documents.push_back({std::to_string(number), text});
      }
      return data::make_sequences(documents, tokenizer, data::segment_length(pair_length));
    };
    return data::MaskedCorpus{tokenizer, part(0, 20), part(20, 25)};
  }();
  return corpus;
}

train::PreTrainingTask task_of(int64_t batch_size, double dropout = 0) {
  models::BertConfig config = small_config(dropout);
  config.max_position_embeddings = pair_length;
  return train::PreTrainingTask(walks(), config, pair_length, batch_size, 9);
}

}  // namespace

TEST_CASE("the loss adds both heads', a pair's as much as its masked tokens'", "[train]") {
  train::PreTrainingTask task = task_of(4);
  task.model().train(false);
  const data::Batch batch = task.batches().batch(0);
  const int64_t samples = 4, rows = static_cast<int64_t>(batch.rows.size());
  const auto out = task.model()({.ids = from_values(batch.ids, {samples, pair_length}),
                                 .types = from_values(batch.types, {samples, pair_length}),
                                 .lengths = from_values(batch.lengths, {samples})},
                                from_values(batch.rows, {rows}));
  const auto mean_of = [](const Tensor& logits, const std::vector<int64_t>& labels, int64_t& items) {
    const std::vector<double> x = to_vector<double>(logits);
    const size_t width = static_cast<size_t>(logits.size(1));
    double sum = 0;
    items = 0;
    for (size_t row = 0; row < labels.size(); ++row) {
      if (labels[row] == data::ignored_label) continue;
      double total = 0;
      for (size_t i = 0; i < width; ++i) total += std::exp(x[row * width + i]);
      sum += std::log(total) - x[row * width + static_cast<size_t>(labels[row])];
      ++items;
    }
    return sum;
  };
  int64_t masked_items = 0, pairs = 0;
  const double masked = mean_of(out.masked, batch.labels, masked_items),
               next = mean_of(out.next_sentence, batch.kinds, pairs);
  CHECK(masked_items == batch.items);
  CHECK(pairs == samples);
  const double weight = static_cast<double>(rows) / static_cast<double>(samples);  // the seats of a sample's targets
  CHECK(item(task.forward(batch).loss_sum) == Approx(masked + weight * next).epsilon(1e-5));
}

TEST_CASE("micro-batches of pairs give the gradients of their whole batch", "[train]") {
  train::PreTrainingTask whole = task_of(4), parts = task_of(2);
  const data::Batch batch = whole.batches().batch(0);
  std::vector<data::Batch> halves{parts.batches().batch(0), parts.batches().batch(1)};
  REQUIRE(batch.items == halves[0].items + halves[1].items);
  const std::vector<int64_t> all{batch.items}, two{halves[0].items, halves[1].items};
  autograd::backward(whole.forward(batch).loss_sum, {.seeds = {optim::accumulation_seed(all)}});
  for (const data::Batch& half : halves)
    autograd::backward(parts.forward(half).loss_sum, {.seeds = {optim::accumulation_seed(two)}});
  const auto a = whole.model().parameters(), b = parts.model().parameters();
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const auto x = to_vector<double>(autograd::gradient(a[i].tensor)),
               y = to_vector<double>(autograd::gradient(b[i].tensor));
    double largest = 0, difference = 0;
    for (size_t e = 0; e < x.size(); ++e) {
      largest = std::max(largest, std::abs(x[e]));
      difference = std::max(difference, std::abs(x[e] - y[e]));
    }
    INFO(a[i].name);
    CHECK(difference <= 64 * 0x1p-24 * std::max(largest, 1e-3));  // sums of some dozen rounded terms
  }
}

TEST_CASE("what follows is learnt", "[train]") {
  const ThreadScope one(1);
  train::PreTrainingTask task = task_of(16);
  train::RunOptions options{.max_steps = 600, .optimizer = {.rate = 2e-3}, .quiet = true};
  const train::RunResult result = train::run(task, options, {{"task", "pairs"}});
  for (const std::string& name : task.evaluation_names()) {
    INFO(name);
    CHECK(!std::isnan(train::number(result.evaluation, name)));
  }
  CHECK(train::number(result.evaluation, "eval_next_sentence_accuracy") > 0.9);
  CHECK(train::number(result.evaluation, "eval_loss") ==
        Approx(train::number(result.evaluation, "eval_masked_loss") +
               train::number(result.evaluation, "eval_next_sentence_loss")));
}

TEST_CASE("a text without a token to guess is refused, and no number is nobody's best", "[train]") {
  data::MaskedCorpus corpus = small_corpus();
  std::vector<int32_t> ids(12, 0);
  ids[0] = 2, ids[1] = 3;
  const data::Sequences nothing = data::sequences_of(12, {.ids = ids, .lengths = {2}, .documents = {}});
  const auto task_error = [&] {
    return error_of<ValueError>([&] { train::MaskedTask(corpus, small_config(), 4, 9); });
  };
  CHECK(task_error() == "no error");
  corpus.held_out = std::exchange(corpus.train, nothing);
  CHECK_THAT(task_error(), Catch::Matchers::Contains("the text to train on has no token to guess"));
  corpus.held_out = nothing;
  CHECK_THAT(task_error(), Catch::Matchers::Contains("the text to evaluate on has no token to guess"));
  CHECK_FALSE(train::WatchedMetric{}.better(NAN, 5));
}
