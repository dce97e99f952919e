// `cinta train bert`: masked tokens, and with --next_sentence pairs of segments as well.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cinta/data/file.h"
#include "cinta/train/masked_task.h"
#include "cinta/train/pretraining_task.h"
#include "tools/commands.h"
#include "tools/fill.h"
#include "tools/settings_file.h"
#include "tools/text_options.h"
#include "tools/train_options.h"

namespace cinta::tools {
namespace {

/// $XDG_CACHE_HOME/cinta, else ~/.cache/cinta (XDG base directory specification).
std::string default_cache_dir() {
  const auto under = [](const char* variable, const char* rest) {
    const char* value = std::getenv(variable);
    return value && *value == '/' ? value + std::string(rest) : std::string();
  };
  const std::string given = under("XDG_CACHE_HOME", "/cinta");
  return given.empty() ? under("HOME", "/.cache/cinta") : given;
}

struct BertOptions : TrainOptions {
  std::string size = "tiny", cache_dir = default_cache_dir();
  int64_t length = 64, vocab_size = 4096, max_eval_samples = 10000;
  double dropout = 0, initializer_range = 0;
  bool next_sentence = false;
  TextOptions reading;

  /// Of the first weights.
  double deviation() const {
    return initializer_range > 0 ? initializer_range : models::BertConfig::named(size).scaled_initializer_range();
  }
  /// Of the batches to train on. A pair is drawn anew in each epoch, so that its length is not known beforehand.
  data::Balance balance_of_samples() const { return next_sentence ? data::Balance::samples : balance(); }
  /// Where tokens are kept; nowhere when empty.
  std::string cache() const { return cache_dir == "none" || fast_dev_run > 0 ? std::string() : cache_dir; }
};

/// All but the size of the vocabulary, which is learnt.
models::BertConfig make_config(const BertOptions& options) {
  models::BertConfig config = models::BertConfig::named(options.size);
  config.max_position_embeddings = options.length;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = options.dropout;
  config.initializer_range = options.deviation();
  return config;
}

/// Refuses to write into the folder of the texts: what a run leaves there would be texts for whoever resumes it.
void require_apart(const BertOptions& options) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (options.fast_dev_run > 0 || !fs::is_directory(options.data, error)) return;
  const fs::path folder = fs::weakly_canonical(options.data, error);
  for (const auto& [name, path] : {std::pair{"output_dir", &options.run.output_dir},
                                   {"result", &options.trial_result},
                                   {"trace", &options.reports.trace}}) {
    const fs::path written = fs::weakly_canonical(fs::absolute(*path, error), error);
    const bool below = std::ranges::mismatch(folder, written).in1 == folder.end();
    require(path->empty() || !below, "train", Where(), "--", name, " ", *path, " lies in the folder --data ",
            options.data, ", all of whose files are read as texts; give one outside of it");
  }
}

ResolvedValues resolved(const BertOptions& options) {
  ResolvedValues out = options.resolution().values;
  make_config(options).check(Where());
  require_apart(options);
  require_effect(*options.command, "balance_lengths", !options.balance_lengths || !options.next_sentence,
                 "with --next_sentence, which draws pairs anew in each epoch: their lengths are not known beforehand");
  if (options.initializer_range == 0) out["initializer_range"] = {join(options.deviation()), "derived from size"};
  if (options.cache() != options.cache_dir)
    out["cache_dir"] = {options.cache(), options.fast_dev_run > 0 ? "derived from fast_dev_run" : ""};
  return out;
}

/// What is trained, and how the command asks it for masked tokens.
struct Training {
  std::unique_ptr<train::LanguageTask> task;
  int64_t samples;
  MaskedLogits logits;
};

Training make_training(const BertOptions& options, const data::MaskedCorpus& corpus) {
  models::BertConfig config = make_config(options);
  config.vocab_size = corpus.tokenizer.vocabulary().size();
  const Device device = parse_device(options.device);
  if (options.next_sentence) {
    auto task = std::make_unique<train::PreTrainingTask>(corpus, config, options.length, options.batch_size,
                                                         options.seed, device, Where());
    auto logits = [&bert = task->model()](const auto& batch, const Tensor& rows) { return bert(batch, rows).masked; };
    const int64_t pairs = task->count();
    return {std::move(task), pairs, logits};
  }
  auto task = std::make_unique<train::MaskedTask>(corpus, config, options.batch_size, options.seed, device, Where(),
                                                  options.balance_of_samples());
  auto logits = [&bert = task->model()](const auto& batch, const Tensor& rows) { return bert(batch, rows); };
  return {std::move(task), corpus.train.count, logits};
}

void print_scores(const train::RunResult& result, const data::UnigramBaseline& baseline, bool next_sentence) {
  const auto number = [&](const char* name) { return train::number(result.evaluation, name); };
  const double loss = number(next_sentence ? "eval_masked_loss" : "eval_loss");
  std::printf("%lld steps in %.0f s, %.0f tokens/s\n", static_cast<long long>(result.steps), result.seconds,
              result.items_per_second);
  std::printf("held out            loss (nats)   masked accuracy\n");
  std::printf("  this model        %8.3f      %8.2f %%\n", loss, 100 * number("eval_masked_accuracy"));
  std::printf("  token frequencies %8.3f      %8.2f %%   (always the most frequent token)\n", baseline.loss,
              100 * baseline.accuracy);
  std::printf("  better by         %8.3f nats\n", baseline.loss - loss);
  if (next_sentence)
    std::printf("next sentence       %8.3f      %8.2f %%   (by chance 50 %%)\n", number("eval_next_sentence_loss"),
                100 * number("eval_next_sentence_accuracy"));
}

void train_bert(const BertOptions& options) {
  const auto say = [&](const std::string& text) {
    if (!options.run.quiet) std::fprintf(stderr, "%s\n", text.c_str());
  };
  require(!options.next_sentence || options.length >= 5, "train", Where(),
          "a pair needs a --sequence_length of at least 5, given ", options.length);
  data::MaskedCorpus corpus =
      data::prepare_corpus(options.data,
                           {.vocab_size = options.vocab_size,
                            .length = options.next_sentence ? data::segment_length(options.length) : options.length,
                            .seed = options.seed,
                            .on_bad_utf8 = options.reading.bad_utf8(),
                            .cache_dir = options.cache()},
                           say, Where());
  if (const int64_t most = options.max_eval_samples; most > 0 && corpus.held_out.count > most) {
    say(join("evaluations look at the first ", most, " held-out sequences (--max_eval_samples)"));
    corpus.held_out = corpus.held_out.first(most);
  }
  const auto [task, samples, logits] = make_training(options, corpus);
  task->model().set_checkpoint_policy(autograd::parse_checkpoint_policy(options.gradient_checkpointing));
  const data::UnigramBaseline baseline =
      data::unigram_baseline(corpus.train, corpus.held_out, corpus.tokenizer.vocabulary());
  task->compute_without_padding(options.padding_free);
  say(join("bert-", options.size, ": ", task->model().parameter_count(), " parameters"));

  const uint32_t crc32 =
      data::crc32_of(std::as_bytes(corpus.held_out.ids), data::crc32_of(std::as_bytes(corpus.train.ids)));
  const train::RunOptions run = options.resolve(samples);
  const train::RunResult result =
      train::run(*task, run,
                 options.header(options.next_sentence ? "bert, next sentence" : "bert", crc32,
                                {{"dropout", options.dropout}}, options.balance_of_samples()));
  if (!options.publish(result, run.output_dir, {{"unigram", baseline.loss}},
                       {{"unigram_loss", baseline.loss}, {"unigram_accuracy", baseline.accuracy}}))
    return;
  print_scores(result, baseline, options.next_sentence);
  for (const char* line : {"#include <[MASK]>", "std::[MASK]<int> v;", "return *[MASK];", "template<typename _[MASK]>",
                           "for (int i = 0; i < n; ++[MASK])"})
    if (static_cast<int64_t>(corpus.tokenizer.encode_framed(line).ids.size()) <= options.length)
      print_filled(line, fill(task->model(), logits, corpus.tokenizer, line, 3));
  if (!run.output_dir.empty()) std::printf("weights, vocabulary, metrics and loss curve: %s\n", run.output_dir.c_str());
}

}  // namespace

void add_train_bert(CLI::App& train) {
  auto options = std::make_shared<BertOptions>();
  options->run.max_steps = 5000;
  options->run.optimizer.rate = 2e-3;
  options->run.schedule.warmup = 100;
  CLI::App* command =
      train.add_subcommand("bert", "a BERT as masked language model on a text file, or on those of a folder");
  options->add_to(*command);
  command->add_option("--size", options->size, "tiny, mini, small, base, large")->capture_default_str();
  command->add_option("--sequence_length", options->length, "tokens of a sample")->capture_default_str();
  command->add_option("--vocab_size", options->vocab_size, "tokens that are learnt from the text")
      ->capture_default_str();
  command->add_option("--dropout", options->dropout, "part of all elements")->capture_default_str();
  command
      ->add_option("--initializer_range", options->initializer_range,
                   "standard deviation of the first weights; 0: 0.02 * sqrt(768 / width)")
      ->capture_default_str()
      ->check(at_least(0));
  command->add_flag("--next_sentence", options->next_sentence,
                    "train on pairs of segments, and to tell whether the second follows the first");
  options->add_packing(*command);
  command->add_option("--max_eval_samples", options->max_eval_samples, "held-out sequences that are looked at; 0: all")
      ->capture_default_str()
      ->check(at_least(0));
  options->reading.add_to(*command);
  command->add_option("--cache_dir", options->cache_dir, "where tokenised texts are kept for later runs; none: nowhere")
      ->capture_default_str();
  set_work(
      *command, [options] { train_bert(*options); }, [options] { return resolved(*options); });
}

}  // namespace cinta::tools
