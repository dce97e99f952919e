// `cinta train mlp | bert`; train_characters.cpp adds the third.
#include <cmath>
#include <cstdio>
#include <memory>

#include "cinta/data/file.h"
#include "cinta/train/classify_task.h"
#include "cinta/train/masked_task.h"
#include "tools/commands.h"
#include "tools/fill.h"
#include "tools/read_examples.h"
#include "tools/train_options.h"

namespace cinta::tools {
namespace {

struct MlpOptions : TrainOptions {
  std::string labels;
  std::vector<int64_t> hidden{128, 64};
  int64_t seeds = 1;
};

void train_mlp(const MlpOptions& options) {
  require(options.gradient_checkpointing == "none", "train", Where(), "an MLP has no layers to checkpoint, given ",
          "--gradient_checkpointing ", options.gradient_checkpointing);
  require(options.seeds == 1 || options.trial_result.empty(), "train", Where(), "--result is that of one run, given ",
          "--seeds ", options.seeds);
  const data::Examples examples = read_examples(options.data, options.labels);
  if (!options.run.quiet)
    std::fprintf(stderr, "%s: %lld rows of %lld features, %lld classes\n", options.data.c_str(),
                 static_cast<long long>(examples.count), static_cast<long long>(examples.features),
                 static_cast<long long>(examples.classes));
  const uint32_t crc32 = data::crc32_of(std::as_bytes(std::span(examples.labels)),
                                        data::crc32_of(std::as_bytes(std::span(examples.inputs))));
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < options.seeds; ++i) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(i);
    data::Split split = data::split(examples, 0.2, seed);
    const data::Standardizer standardizer = data::Standardizer::learn(split.train);
    for (data::Examples* part : {&split.train, &split.test}) standardizer.apply(*part);
    const int64_t train_count = split.train.count, test_count = split.test.count;
    train::ClassifyTask task(std::move(split), standardizer, options.hidden, options.batch_size, seed,
                             parse_device(options.device));
    train::RunOptions run = options.resolve(train_count);
    if (i > 0 && !run.output_dir.empty()) run.output_dir += "/seed-" + std::to_string(seed);
    const train::RunResult result = train::run(task, run, options.header("mlp", crc32));
    publish(result, run.output_dir, {});
    if (result.stopped_by) return;
    const double accuracy = 100 * train::number(result.evaluation, "eval_accuracy");
    std::printf("seed %llu: %lld to train on, %lld to test; test accuracy %.2f %% after %lld steps in %.1f s\n",
                static_cast<unsigned long long>(seed), static_cast<long long>(train_count),
                static_cast<long long>(test_count), accuracy, static_cast<long long>(result.steps), result.seconds);
    sum += accuracy;
    squares += accuracy * accuracy;
  }
  const double count = static_cast<double>(options.seeds), mean = sum / count;
  if (options.seeds > 1)
    std::printf("mean of %lld seeds: test accuracy %.2f +- %.2f %%\n", static_cast<long long>(options.seeds), mean,
                std::sqrt(std::max(0.0, (squares - count * mean * mean) / (count - 1))));
  if (!options.run.output_dir.empty() && options.fast_dev_run == 0)
    std::printf("weights, metrics and loss curve: %s\n", options.run.output_dir.c_str());
}

struct BertOptions : TrainOptions {
  std::string size = "tiny";
  int64_t length = 64, vocab_size = 4096;
  double dropout = 0, initializer_range = 0;
};

void train_bert(const BertOptions& options) {
  auto say = [&](const std::string& text) {
    if (!options.run.quiet) std::fprintf(stderr, "%s\n", text.c_str());
  };
  const train::MaskedCorpus corpus =
      train::prepare_corpus(options.data, options.vocab_size, options.length, options.seed, say);
  models::BertConfig config = models::BertConfig::named(options.size);
  config.vocab_size = corpus.tokenizer.vocabulary().size();
  config.max_position_embeddings = options.length;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = options.dropout;
  // BERT's deviation belongs to its width of 768. A narrow model that starts with it sees all positions alike for the
  // first thousands of steps; scaled to the width, it begins to read its context within hundreds.
  config.initializer_range = options.initializer_range > 0
                                 ? options.initializer_range
                                 : 0.02 * std::sqrt(768 / static_cast<double>(config.hidden_size));
  train::MaskedTask task(corpus, config, options.batch_size, options.seed, parse_device(options.device));
  task.model().set_checkpoint_policy(autograd::parse_checkpoint_policy(options.gradient_checkpointing));
  const data::UnigramBaseline baseline =
      data::unigram_baseline(corpus.train, corpus.held_out, corpus.tokenizer.vocabulary());
  say(join("bert-", options.size, ": ", task.model().parameter_count(), " parameters"));

  const uint32_t crc32 = data::crc32_of(std::as_bytes(std::span(corpus.held_out.ids)),
                                        data::crc32_of(std::as_bytes(std::span(corpus.train.ids))));
  const train::RunOptions run = options.resolve(corpus.train.count);
  const train::RunResult result = train::run(task, run, options.header("bert", crc32));
  publish(result, run.output_dir, {{"unigram", baseline.loss}});
  if (result.stopped_by) return;
  const double loss = train::number(result.evaluation, "eval_loss"),
               accuracy = 100 * train::number(result.evaluation, "eval_masked_accuracy");
  std::printf("%lld steps in %.0f s, %.0f tokens/s\n", static_cast<long long>(result.steps), result.seconds,
              result.items_per_second);
  std::printf("held out            loss (nats)   masked accuracy\n");
  std::printf("  this model        %8.3f      %8.2f %%\n", loss, accuracy);
  std::printf("  token frequencies %8.3f      %8.2f %%   (always the most frequent token)\n", baseline.loss,
              100 * baseline.accuracy);
  std::printf("  better by         %8.3f nats\n", baseline.loss - loss);
  for (const char* line : {"#include <[MASK]>", "std::[MASK]<int> v;", "return *[MASK];", "template<typename _[MASK]>",
                           "for (int i = 0; i < n; ++[MASK])"})
    if (static_cast<int64_t>(corpus.tokenizer.encode_framed(line).ids.size()) <= options.length)
      print_filled(task.model(), corpus.tokenizer, line, 3);
  if (!run.output_dir.empty()) std::printf("weights, vocabulary, metrics and loss curve: %s\n", run.output_dir.c_str());
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App* train = app.add_subcommand("train", "train a model")->require_subcommand(1);

  auto mlp = std::make_shared<MlpOptions>();
  mlp->batch_size = 64;
  mlp->run.optimizer.rate = 1e-3;
  mlp->epochs = 30;
  mlp->run.max_grad_norm = 0;
  CLI::App* mlp_command =
      train->add_subcommand("mlp",
                            "an MLP that tells classes apart: a CSV whose last column is the class (0, 1, ..), "
                            "IDX images with --labels, or 'generated' digits");
  mlp->add_to(*mlp_command);
  mlp_command->add_option("--labels", mlp->labels, "IDX file of the classes, where --data is one of images");
  mlp_command->add_option("--hidden", mlp->hidden, "widths of the hidden layers")->capture_default_str();
  mlp_command->add_option("--seeds", mlp->seeds, "runs with consecutive seeds")
      ->capture_default_str()
      ->check(at_least(1));
  set_work(*mlp_command, [mlp] { train_mlp(*mlp); });

  auto bert = std::make_shared<BertOptions>();
  bert->run.max_steps = 5000;
  bert->run.optimizer.rate = 2e-3;
  bert->run.schedule.warmup = 100;
  CLI::App* bert_command =
      train->add_subcommand("bert", "a BERT as masked language model on the text files of a folder");
  bert->add_to(*bert_command);
  bert_command->add_option("--size", bert->size, "tiny, mini, small, base, large")->capture_default_str();
  bert_command->add_option("--sequence_length", bert->length)->capture_default_str();
  bert_command->add_option("--vocab_size", bert->vocab_size)->capture_default_str();
  bert_command->add_option("--dropout", bert->dropout)->capture_default_str();
  bert_command
      ->add_option("--initializer_range", bert->initializer_range,
                   "standard deviation of the first weights; 0: 0.02 * sqrt(768 / width)")
      ->capture_default_str()
      ->check(at_least(0));
  set_work(*bert_command, [bert] { train_bert(*bert); });

  add_train_characters(*train);
  add_train_classify(*train);
}

}  // namespace cinta::tools
