// The causal character Transformer: it learns, sees nothing of the future, and its files bring it back.
#include "cinta/models/character_transformer.h"

#include <catch2/catch.hpp>

#include "autocast_helpers.h"
#include "cinta/autograd/autocast.h"
#include "cinta/autograd/mode.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/context.h"
#include "cinta/core/random.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/shape.h"
#include "cinta/train/character_task.h"
#include "cinta/train/loop.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::testing;
using Catch::Matchers::Contains;

namespace {

/// Words drawn at random: hard to guess at a word's first letter, easy after it.
std::string drawn_text(uint64_t words) {
  const char* list[] = {"thread ", "needle ", "button ", "cotton ", "scissors ", "ribbon ", "pattern ", "velvet "};
  std::string text;
  for (uint64_t i = 0; i < words; ++i) text += list[random_word(1, 0, 0, i) % std::size(list)];
  return text;
}

train::RunOptions short_run(int64_t steps) {
  return {.max_steps = steps,
          .optimizer = {.rate = 4e-3},
          .schedule = {.warmup = 20},
          .logging_steps = steps,
          .quiet = true};
}

}  // namespace

TEST_CASE("a character model learns what characters follow", "[character_transformer]") {
  const train::CharacterCorpus corpus = train::split_text(drawn_text(3000));
  const double unigram = train::unigram_loss(corpus);
  CHECK(unigram > 2.3);
  const models::BertConfig config = models::CharacterTransformer::configuration(corpus.characters.size(), 32, 32);
  train::CharacterTask task(corpus, config, 16, 1);
  const train::MetricFields before = task.evaluate();
  CHECK(train::number(before, "eval_loss") > 0.9 * unigram);
  const train::RunResult result = train::run(task, short_run(150), {});
  // Only which word comes is open: log 8 nats in some 7.6 characters, and more at the start of a sequence.
  CHECK(train::number(result.evaluation, "eval_loss") < 0.3 * unigram);
  CHECK(train::number(result.evaluation, "eval_accuracy") > 0.75);

  task.model().train(false);
  const std::string text = train::continue_text(task.model(), corpus.characters, "thread ", 60, 1);
  CHECK(text == train::continue_text(task.model(), corpus.characters, "thread ", 60, 1));
  CHECK(text != train::continue_text(task.model(), corpus.characters, "thread ", 60, 2));
  CHECK(text.size() == 67);
}

TEST_CASE("a later character changes no earlier prediction", "[character_transformer]") {
  constexpr int64_t vocabulary = 20, length = 70, samples = 2;
  const models::CharacterTransformer model(models::CharacterTransformer::configuration(vocabulary, length, 32), 3);
  const autograd::NoGrad off;
  std::vector<int64_t> ids(static_cast<size_t>(samples * length));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = random_word(2, 0, 0, i) % vocabulary;
  const auto predict = [&] { return to_vector<float>(model(from_values(ids, {samples, length}))); };
  const std::vector<float> before = predict();
  for (int64_t place : {int64_t{1}, int64_t{16}, int64_t{17}, int64_t{63}, int64_t{64}, length - 1}) {
    const std::vector<int64_t> kept = ids;
    for (int64_t sample = 0; sample < samples; ++sample) {
      int64_t& id = ids[static_cast<size_t>(sample * length + place)];
      id = (id + 1) % vocabulary;
    }
    const std::vector<float> after = predict();
    ids = kept;
    for (int64_t row = 0; row < samples * length; ++row) {
      INFO("character " << place << " changed, prediction after character " << row % length);
      const auto begin = row * vocabulary;
      const bool same = std::equal(before.begin() + begin, before.begin() + begin + vocabulary, after.begin() + begin);
      CHECK(same == (row % length < place));
    }
  }
}

TEST_CASE("a character model comes back from its files", "[character_transformer]") {
  const Scratch scratch;
  const train::CharacterCorpus corpus = train::split_text(drawn_text(200));
  const models::BertConfig config = models::CharacterTransformer::configuration(corpus.characters.size(), 16, 16, 1);
  train::CharacterTask trained(corpus, config, 8, 1), fresh(corpus, config, 8, 2);
  train::RunOptions options = short_run(5);
  options.output_dir = scratch / "run";
  const train::RunResult result = train::run(trained, options, {});
  CHECK(fresh.evaluate() != result.evaluation);
  fresh.load(result.checkpoint);
  CHECK(fresh.evaluate() == result.evaluation);

  const train::CharacterCorpus other = train::split_text("other letters, " + drawn_text(100));
  train::CharacterTask stranger(other, config, 8, 1);
  CHECK_THAT(error_of<FileError>([&] { stranger.load(result.checkpoint); }), Contains("other characters"));
}

TEST_CASE("a text that is too short is refused", "[character_transformer]") {
  const models::BertConfig config = models::CharacterTransformer::configuration(3, 16, 16, 1);
  const train::CharacterCorpus corpus = train::split_text(std::string(100, 'a') + "bc");
  CHECK_THAT(error_of<ValueError>([&] { train::CharacterTask(corpus, config, 8, 1); }),
             Contains("the held-out 10 characters are no sequence of 16"));
  CHECK_THAT(error_of<ValueError>([] { train::split_text(""); }), Contains("empty text"));
}

TEST_CASE("no pass of a pre-norm model's step in low precision only casts", "[character_transformer][autocast]") {
  models::BertConfig config = models::CharacterTransformer::configuration(65, 16);
  const Tensor ids = full({2, 16}, 7, Dtype::i64), labels = full({2 * 16}, 9, Dtype::i64);
  for (const double dropout : {0.0, 0.1})
    for (Dtype low : {Dtype::bf16, Dtype::f16}) {
      config.hidden_dropout_prob = dropout;
      const models::CharacterTransformer model(config, 3);
      Casts casts;
      const autograd::Scoped watching(&autograd::Mode::observer, static_cast<autograd::Observer*>(&casts));
      const Tensor loss = [&] {
        const autograd::AutocastScope scope(autograd::Autocast{.low = low});
        return cross_entropy(reshape(model(ids), {2 * 16, 65}), labels);
      }();
      autograd::backward(loss);
      CHECK(casts.count == 0);
    }
}

TEST_CASE("in low precision a pre-norm model keeps half the bytes", "[character_transformer]") {
  constexpr int64_t vocabulary = 65, length = 64, samples = 8;
  const models::CharacterTransformer model(models::CharacterTransformer::configuration(vocabulary, length), 3);
  const Tensor ids = full({samples, length}, 7, Dtype::i64), labels = full({samples * length}, 9, Dtype::i64);
  const auto kept = [&](std::optional<autograd::Autocast> types) {
    const auto alive = [] { return memory_statistics(cpu).live[static_cast<size_t>(Category::activations)]; };
    const int64_t before = alive();
    const autograd::AutocastScope scope(types);
    const Tensor loss = cross_entropy(reshape(model(ids), {samples * length, vocabulary}), labels);
    return static_cast<double>(alive() - before);
  };
  for (Dtype low : {Dtype::bf16, Dtype::f16}) CHECK(kept(autograd::Autocast{.low = low}) <= 0.55 * kept({}));
}
