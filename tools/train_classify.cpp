// `cinta train classify`: a BERT, pre-trained or not, learns the classes of texts.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "cinta/data/examples.h"
#include "cinta/data/file.h"
#include "cinta/data/permutation.h"
#include "cinta/data/text_columns.h"
#include "cinta/data/wordpiece_trainer.h"
#include "cinta/models/model_file.h"
#include "cinta/train/text_classes.h"
#include "cinta/train/text_classify_task.h"
#include "tools/commands.h"
#include "tools/confusion.h"
#include "tools/model_options.h"
#include "tools/settings_file.h"
#include "tools/text_options.h"
#include "tools/train_options.h"

namespace cinta::tools {
namespace {

struct ClassifyOptions : TrainOptions {
  std::string model, test_data, size = "tiny", trained = "all";
  int64_t length = 64, vocab_size = 4096;
  double dropout = 0.1, test_fraction = 0.2;
  TextOptions reading;
};

struct Texts {
  data::LabelledText train, test;
  train::TextClasses classes;  ///< for the whole training file, also where all samples of one are held out
};

/// The training file and the test file, or a seeded part of the first.
Texts read_texts(const ClassifyOptions& options, const models::BertConfig& config) {
  auto read = [&](const std::string& path, const std::vector<std::string>& classes) {
    data::LabelledText text = data::read_labelled_text(path, options.reading.bad_utf8(), classes);
    if (!text.note.empty()) ModelOptions{options.model, options.run.quiet}.note(path + ": " + text.note);
    train::require_segments(text, config, path);
    return text;
  };
  data::LabelledText all = read(options.data, {});
  const std::vector<std::string> labels = data::label_names(all.labels);
  require(labels.size() > 1, "train", Where(), options.data, ": all samples have the label '", labels.front(), "'");
  const train::TextClasses classes = train::choose_classes(labels, options.model);
  if (!options.test_data.empty()) {
    data::LabelledText test = read(options.test_data, classes.names);
    auto form = [](const data::LabelledText& text) { return text.second.empty() ? "single texts" : "pairs of texts"; };
    require(test.second.empty() == all.second.empty(), "train", Where(), options.test_data, ": holds ", form(test),
            ", ", options.data, " holds ", form(all));
    return {std::move(all), std::move(test), classes};
  }
  const auto count = static_cast<int64_t>(all.count());
  const auto test = static_cast<int64_t>(static_cast<double>(count) * options.test_fraction);
  require(test > 0 && test < count, "train", Where(), options.data, ": ", count,
          " samples leave none to test or train");
  const std::vector<int64_t> order = data::permutation(count, options.seed, 0);
  const std::span<const int64_t> rows(order);
  const auto train = static_cast<size_t>(count - test);
  return {select(all, rows.first(train)), select(all, rows.subspan(train)), classes};
}

/// The tokenizer of a pre-trained model, or one learnt on the training texts.
data::WordPiece make_tokenizer(const ClassifyOptions& options, const data::LabelledText& train,
                               const models::BertConfig& config) {
  if (!options.model.empty()) return options.reading.load_tokenizer({options.model, options.run.quiet}, config);
  require(!options.reading.final_sigma, "train", Where(),
          "--final_sigma is for a --model whose tokenizer lower-cases; one learnt here keeps capitals");
  constexpr data::TokenizerOptions cased{.lower_case = false, .strip_accents = false};
  data::WordCounter words(cased);
  for (const auto* texts : {&train.first, &train.second})
    for (const std::string& text : *texts) words.add(text, options.data, Where());
  return data::WordPiece(data::learn_vocabulary(words.counts(), options.vocab_size, Where()), cased);
}

/// Whether a pre-trained model drops what it was made to drop.
bool takes_dropout_of_model(const ClassifyOptions& options) {
  return !options.model.empty() && !is_given(*options.command, "dropout");
}

models::BertConfig make_config(const ClassifyOptions& options) {
  models::BertConfig config = models::BertConfig::named(options.size);
  if (!options.model.empty()) {
    config = models::read_config(options.model);
  } else {
    config.max_position_embeddings = options.length;
    config.initializer_range = config.scaled_initializer_range();
  }
  if (!takes_dropout_of_model(options)) {
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = options.dropout;
    config.classifier_dropout = -1;  // the same
  }
  return config;
}

/// Tokens of a sample at most: no more than the model has positions.
int64_t length_for(const ClassifyOptions& options, const models::BertConfig& config) {
  return std::min(options.length, config.max_position_embeddings);
}

ResolvedValues resolved(const ClassifyOptions& options) {
  ResolvedValues out = options.resolution().values;
  require_effect(*options.command, "test_fraction", options.test_data.empty(), "with --test_data");
  for (const char* name : {"size", "vocab_size"})
    require_effect(*options.command, name, options.model.empty(), "with --model, which has its own");
  if (!options.test_data.empty()) out["test_fraction"] = {"unused", "derived from test_data"};
  const models::BertConfig config = make_config(options);
  config.check(Where());
  if (options.model.empty()) return out;
  const int64_t length = length_for(options, config);
  require(length == options.length || !is_given(*options.command, "sequence_length"), "train", Where(),
          "--sequence_length ", options.length, " is more than --model ", options.model, " has positions: ", length);
  if (length != options.length) out["sequence_length"] = {join(length), "derived from model"};
  for (const char* name : {"size", "vocab_size"}) out[name] = {"unused", "derived from model"};
  if (takes_dropout_of_model(options)) out["dropout"] = {join(config.hidden_dropout_prob), "derived from model"};
  return out;
}

void train_classify(const ClassifyOptions& options) {
  models::BertConfig config = make_config(options);
  const Texts texts = read_texts(options, config);
  const ModelOptions model{options.model, options.run.quiet};
  if (!texts.classes.note.empty()) model.note(texts.classes.note);
  config.label_names = texts.classes.names;
  const int64_t length = length_for(options, config);
  const data::WordPiece tokenizer = make_tokenizer(options, texts.train, config);
  if (options.model.empty()) config.vocab_size = tokenizer.vocabulary().size();
  const train::TextClassifyData data{tokenizer,
                                     encode(texts.train, tokenizer, config.label_names, length, options.data),
                                     encode(texts.test, tokenizer, config.label_names, length,
                                            options.test_data.empty() ? options.data : options.test_data)};
  train::TextClassifyTask task(data, config, options.batch_size, options.seed, parse_device(options.device), Where(),
                               options.balance());
  task.compute_without_padding(options.padding_free);
  task.model().set_checkpoint_policy(autograd::parse_checkpoint_policy(options.gradient_checkpointing));
  nlohmann::ordered_json more = nlohmann::ordered_json::object();
  if (!options.model.empty()) {
    std::vector<std::string> new_prefixes;
    if (!texts.classes.keeps_head) new_prefixes = {"classifier."};
    const auto report = models::load_weights(task.model(), options.model, {"bert.pooler."}, new_prefixes);
    more["load"] = json_of(report);
    model.note(report);
  }
  if (options.trained == "head") {
    task.model().set_trainable("bert.embeddings", false);
    task.model().set_trainable("bert.encoder", false);
  }
  if (!options.run.quiet)
    std::fprintf(stderr, "%s: %zu samples to train on, %zu to test, %zu classes\n", options.data.c_str(),
                 texts.train.count(), texts.test.count(), config.label_names.size());
  uint32_t crc32 = 0;
  for (const data::ClassifiedSequences* part : {&data.train, &data.test})
    crc32 = data::crc32_of(std::as_bytes(std::span(part->labels)),
                           data::crc32_of(std::as_bytes(std::span(part->sequences.ids)), crc32));
  for (const std::string& name : config.label_names)
    crc32 = data::crc32_of(std::as_bytes(std::span(name.c_str(), name.size() + 1)), crc32);
  const train::RunOptions run = options.resolve(data.train.sequences.count);
  const auto header = options.header(
      "classify", crc32, {{"dropout", config.hidden_dropout_prob}, {"trained", options.trained}}, options.balance());
  const train::RunResult result = train::run(task, run, header);
  const models::BertConfig& trained = task.model().config();
  const bool judged = !result.evaluation.empty();
  if (judged) more.update(confusion_json(task.confusion(), trained));
  if (!options.publish(result, run.output_dir, {}, more)) return;
  print_confusion(task.confusion(), trained);
  std::printf("test: loss %.4f, accuracy %.2f %%, macro F1 %.4f after %lld steps in %.1f s\n",
              train::number(result.evaluation, "eval_loss"), 100 * train::number(result.evaluation, "eval_accuracy"),
              train::number(result.evaluation, "eval_macro_f1"), static_cast<long long>(result.steps), result.seconds);
  if (!run.output_dir.empty()) std::printf("weights, vocabulary, metrics and loss curve: %s\n", run.output_dir.c_str());
}

}  // namespace

void add_train_classify(CLI::App& train) {
  auto options = std::make_shared<ClassifyOptions>();
  options->epochs = 3;
  options->run.optimizer.rate = 5e-4;
  CLI::App* command =
      train.add_subcommand("classify", "a BERT on texts with classes: CSV, TSV or JSON lines (text[, pair], label)");
  command->footer("Names of columns and keys: " + data::known_column_names());
  options->add_to(*command);
  command->add_option("--model", options->model,
                      "directory of a pre-trained BERT; without it all is learnt anew; a classifier keeps its classes "
                      "where it knows all of the data's");
  command->add_option("--test_data", options->test_data, "file of the test samples; without it a part of --data");
  command->add_option("--test_fraction", options->test_fraction, "part of --data, where there is no --test_data")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--train", options->trained, "all, or the head (pooler and classifier) alone")
      ->capture_default_str()
      ->check(CLI::IsMember({"all", "head"}));
  command->add_option("--size", options->size, "of a model without --model: tiny, mini, small, base, large")
      ->capture_default_str();
  command->add_option("--sequence_length", options->length, "tokens of a sample at most")->capture_default_str();
  command->add_option("--vocab_size", options->vocab_size, "of a model without --model")->capture_default_str();
  command->add_option("--dropout", options->dropout, "part of all elements; unless given, a --model's own parts")
      ->capture_default_str();
  options->add_packing(*command);
  options->reading.add_to(*command);
  options->reading.add_final_sigma(*command);
  set_work(
      *command, [options] { train_classify(*options); }, [options] { return resolved(*options); });
}

}  // namespace cinta::tools
