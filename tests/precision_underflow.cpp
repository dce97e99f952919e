// What a narrow format loses when nothing is scaled, and that scales bring it back: a pre-norm model, whose gradients
// reach its products as small as the mean over many tokens makes them.
#include <catch2/catch.hpp>

#include "cinta/core/random.h"
#include "cinta/train/character_task.h"
#include "cinta/train/loop.h"
#include "cinta/train/precision.h"

using namespace cinta;

namespace {

/// The held-out loss after a short training on words drawn at random.
double loss_of(const char* precision, const char* loss_scale) {
  const char* list[] = {"thread ", "needle ", "button ", "cotton ", "scissors ", "ribbon ", "pattern ", "velvet "};
  std::string text;
  for (uint64_t i = 0; i < 3000; ++i) text += list[random_word(1, 0, 0, i) % std::size(list)];
  const train::CharacterCorpus corpus = train::split_text(text);
  const models::BertConfig config = models::CharacterTransformer::configuration(corpus.characters.size(), 32, 32);
  train::CharacterTask task(corpus, config, 16, 1);
  train::RunOptions options{
      .max_steps = 150, .optimizer = {.rate = 4e-3}, .schedule = {.warmup = 20}, .logging_steps = 150, .quiet = true};
  options.autocast = train::parse_precision(precision);
  options.loss_scale = optim::parse_loss_scale(loss_scale);
  return train::number(train::run(task, options, {}).evaluation, "eval_loss");
}

}  // namespace

TEST_CASE("unscaled narrow gradients are lost and scaled ones are not", "[precision]") {
  const double wide = loss_of("fp32", "1");
  CHECK(wide < 0.7);
  // A mean over 512 x 19 logits, made smaller as if over 4096 and 32 times the tokens.
  CHECK(loss_of("fp16", "0.000244140625") > wide + 0.5);
  CHECK(std::abs(loss_of("fp16", "dynamic") - wide) < 0.01);
  CHECK(loss_of("fp8/none", "0.03125") > wide + 0.5);
  CHECK(std::abs(loss_of("fp8", "0.03125") - wide) < 0.02);
  CHECK(std::abs(loss_of("fp8/block", "0.03125") - wide) < 0.02);
}
