// `cinta eval`: how well a trained model does on data.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cinta/data/file.h"
#include "cinta/train/character_task.h"
#include "cinta/train/classifier.h"
#include "cinta/train/masked_task.h"
#include "cinta/train/pretraining_task.h"
#include "cinta/train/text_classes.h"
#include "cinta/train/text_classify_task.h"
#include "tools/commands.h"
#include "tools/confusion.h"
#include "tools/model_options.h"
#include "tools/read_examples.h"
#include "tools/settings_file.h"
#include "tools/text_options.h"
#include "tools/train_options.h"

namespace cinta::tools {
namespace {

struct Options {
  std::string data, labels;
  ModelOptions model{"runs/headers-bert"};
  int64_t batch_size = 32;
  uint64_t seed = 0;
  TextOptions reading;
  bool as_json = false;
};

/// Numbers, what a classifier of texts took for what, and what loading the model did.
struct Evaluation {
  train::MetricFields numbers;
  models::LoadReport loaded;
  train::Confusion confusion = {};
  models::BertConfig config = {};
};

/// Of a task with the weights of the model.
Evaluation evaluate(train::Task& task, const Options& options) {
  models::LoadReport report = task.load(options.model.directory);
  return {task.evaluate(), std::move(report)};
}

Evaluation evaluate_mlp(const Options& options) {
  auto [classifier, report] = train::load_classifier(options.model.directory);
  const std::vector<int64_t>& sizes = classifier.sizes;
  data::Examples examples = read_examples(options.data, options.labels, sizes.front(), sizes.back());
  if (examples.has_header) options.model.note(options.data + header_note);
  classifier.standardizer.apply(examples);
  return {train::evaluate(classifier, examples, cpu), std::move(report)};
}

/// Of masked tokens, or for a model that has both heads of these in pairs of segments.
Evaluation evaluate_bert(const Options& options, bool in_pairs) {
  const models::BertConfig config = models::read_config(options.model.directory);
  const data::WordPiece tokenizer = options.reading.load_tokenizer(options.model, config);
  const int64_t longest = config.max_position_embeddings;
  const data::Sequences text = data::make_sequences(data::read_documents(options.data, options.reading.bad_utf8()),
                                                    tokenizer, in_pairs ? data::segment_length(longest) : longest);
  const data::MaskedCorpus corpus{tokenizer, text, text};
  std::unique_ptr<train::LanguageTask> task;
  if (in_pairs)
    task = std::make_unique<train::PreTrainingTask>(corpus, config, longest, options.batch_size, options.seed);
  else
    task = std::make_unique<train::MaskedTask>(corpus, config, options.batch_size, options.seed);
  return evaluate(*task, options);
}

Evaluation evaluate_classifier(const Options& options) {
  const models::BertConfig config = models::read_config(options.model.directory);
  config.require_one_of_labels(options.model.directory, Where());
  const std::vector<std::string> names = train::class_names(config);
  data::LabelledText text =
      data::read_labelled_text(options.data, options.reading.bad_utf8(), train::spoken_names(config));
  train::name_numbers(text.labels, config);
  if (!text.note.empty()) options.model.note(options.data + ": " + text.note);
  train::require_segments(text, config, options.data);
  const data::WordPiece tokenizer = options.reading.load_tokenizer(options.model, config);
  const data::ClassifiedSequences samples =
      encode(text, tokenizer, names, config.max_position_embeddings, options.data);
  const train::TextClassifyData both{tokenizer, samples, samples};
  models::BertConfig named = config;
  named.label_names = names;
  train::TextClassifyTask task(both, named, options.batch_size, options.seed);
  Evaluation out = evaluate(task, options);
  out.confusion = task.confusion();
  out.config = named;
  return out;
}

Evaluation evaluate_characters(const Options& options) {
  const data::Characters characters(data::read_file(options.model.directory + "/characters.txt"));
  const std::vector<int32_t> ids = characters.encode(data::read_file(options.data), Where());
  const train::CharacterCorpus corpus{characters, ids, ids};
  train::CharacterTask task(corpus, models::read_config(options.model.directory), options.batch_size, options.seed);
  return evaluate(task, options);
}

/// Refuses what only other models take.
void refuse_unused(const CLI::App& command, const std::string& name) {
  const bool rows = name == "mlp";
  const std::string because = "with a model of class " + name;
  require_effect(command, "labels", rows, because);
  require_effect(command, "batch_size", !rows, because);
  refuse_text_options(command, name);
  require_effect(command, "seed", name == "BertForMaskedLM" || name == "BertForPreTraining", because);
}

Evaluation evaluate(const CLI::App& command, const Options& options) {
  const std::string name = models::model_name(options.model.directory, Where());
  refuse_unused(command, name);
  if (name == "mlp") return evaluate_mlp(options);
  if (name == "BertForSequenceClassification") return evaluate_classifier(options);
  if (name == "CharacterTransformer") return evaluate_characters(options);
  const bool in_pairs = name == "BertForPreTraining";
  require<FileError>(in_pairs || name == "BertForMaskedLM", "eval", Where(), options.model.directory,
                     "/config.json: a ", name,
                     " is not evaluated here; an mlp, a BertForMaskedLM, a BertForPreTraining, a "
                     "BertForSequenceClassification and a CharacterTransformer are");
  return evaluate_bert(options, in_pairs);
}

}  // namespace

void add_eval(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("eval",
                                         "loss and accuracy of a trained model: of a BERT on text files or labelled "
                                         "texts, of a character model on a text, "
                                         "of an MLP on rows");
  command->add_option("--data", options->data, "text: a file or a folder; classes: as for cinta train classify or mlp")
      ->required();
  command->add_option("--labels", options->labels, "IDX file of the classes, where --data is one of images");
  options->model.add_to(*command)->capture_default_str();
  command->add_option("--batch_size", options->batch_size, "samples computed at once")
      ->capture_default_str()
      ->check(at_least(1));
  command->add_option("--seed", options->seed, "of a BERT's masks")->capture_default_str();
  options->reading.add_to(*command);
  options->reading.add_final_sigma(*command);
  command->add_flag("--json", options->as_json, "one object");
  set_work(*command, [options, command] {
    nlohmann::ordered_json all;
    const Evaluation evaluation = evaluate(*command, *options);
    options->model.note(evaluation.loaded);
    for (const auto& [name, value] : evaluation.numbers)
      if (const double* number = std::get_if<double>(&value)) {
        all[name] = *number;
        if (!options->as_json) std::printf("%s %.4f\n", name.c_str(), *number);
      }
    all.update(confusion_json(evaluation.confusion, evaluation.config));
    all["load"] = json_of(evaluation.loaded);
    if (options->as_json)
      std::printf("%s\n", all.dump().c_str());
    else
      print_confusion(evaluation.confusion, evaluation.config);
  });
}

}  // namespace cinta::tools
