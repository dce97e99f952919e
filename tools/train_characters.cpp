// `cinta train characters`.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cinta/data/file.h"
#include "cinta/train/character_task.h"
#include "tools/commands.h"
#include "tools/train_options.h"

namespace cinta::tools {
namespace {

struct CharacterOptions : TrainOptions {
  int64_t hidden = 64, layers = 2, heads = 2, length = 64;
  double dropout = 0;
};

void train_characters(const CharacterOptions& options) {
  const std::string text = data::read_file(options.data);
  require<FileError>(!text.empty(), "train", Where(), options.data, ": is empty");
  const train::CharacterCorpus corpus = train::split_text(text);
  models::BertConfig config = models::CharacterTransformer::configuration(
      corpus.characters.size(), options.length, options.hidden, options.layers, options.heads);
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = options.dropout;
  train::CharacterTask task(corpus, config, options.batch_size, options.seed, parse_device(options.device));
  task.model().set_checkpoint_policy(autograd::parse_checkpoint_policy(options.gradient_checkpointing));
  if (!options.run.quiet)
    std::fprintf(stderr, "%s: %zu characters to train on, %zu held out, %lld distinct; %lld parameters\n",
                 options.data.c_str(), corpus.train.size(), corpus.held_out.size(),
                 static_cast<long long>(corpus.characters.size()),
                 static_cast<long long>(task.model().parameter_count()));

  const uint32_t crc32 =
      data::crc32_of(std::as_bytes(std::span(corpus.held_out)), data::crc32_of(std::as_bytes(std::span(corpus.train))));
  const train::RunOptions run = options.resolve(static_cast<int64_t>(corpus.train.size()) / options.length);
  const train::RunResult result =
      train::run(task, run, options.header("characters", crc32, {{"dropout", options.dropout}}));
  const double baseline = train::unigram_loss(corpus);
  if (!options.publish(result, run.output_dir, {{"unigram", baseline}}, {{"unigram_loss", baseline}})) return;
  const double loss = train::number(result.evaluation, "eval_loss");
  std::printf("%lld steps in %.0f s, %.0f characters/s\n", static_cast<long long>(result.steps), result.seconds,
              result.items_per_second);
  std::printf("held out: %.4f nats a character (%.2f %% right), %.4f from the characters' frequencies alone\n", loss,
              100 * train::number(result.evaluation, "eval_accuracy"), baseline);
  task.model().train(false);
  const std::string begin = corpus.characters.decode(std::span(corpus.held_out).first(8));
  std::printf("--- it goes on from the held-out text's first 8 characters:\n%s\n---\n",
              train::continue_text(task.model(), corpus.characters, begin, 240, options.seed).c_str());
  if (!run.output_dir.empty()) std::printf("weights, characters, metrics and loss curve: %s\n", run.output_dir.c_str());
}

}  // namespace

void add_train_characters(CLI::App& train) {
  auto options = std::make_shared<CharacterOptions>();
  options->run.max_steps = 800;
  options->run.optimizer.rate = 4e-3;
  options->run.schedule.warmup = 50;
  options->batch_size = 16;
  CLI::App* command =
      train.add_subcommand("characters", "a small causal Transformer on one text file, character by character");
  options->add_to(*command);
  command->add_option("--hidden", options->hidden, "width")->capture_default_str();
  command->add_option("--layers", options->layers, "blocks")->capture_default_str();
  command->add_option("--heads", options->heads, "of the attention")->capture_default_str();
  command->add_option("--sequence_length", options->length, "characters of a sample")->capture_default_str();
  command->add_option("--dropout", options->dropout, "part of all elements")->capture_default_str();
  set_work(
      *command, [options] { train_characters(*options); }, [options] { return options->resolution().values; });
}

}  // namespace cinta::tools
