// `cinta eval`: how well a trained model does on data.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cinta/data/digits.h"
#include "cinta/data/file.h"
#include "cinta/data/idx.h"
#include "cinta/data/wordpiece_files.h"
#include "cinta/train/classifier.h"
#include "cinta/train/masked_task.h"
#include "tools/commands.h"
#include "tools/read_examples.h"
#include "tools/train_options.h"

namespace cinta::tools {

data::Examples read_examples(const std::string& data, const std::string& labels) {
  constexpr int64_t generated_count = 1797;  // as many as the UCI set's test part
  if (!labels.empty()) return data::read_idx_examples(data, labels);
  if (data == "generated") return data::generate_digits(generated_count, 0);
  return data::examples_from_table(data::read_csv(data), data);
}

namespace {

struct Options {
  std::string data, labels, model = "runs/headers-bert";
  int64_t batch_size = 32;
  uint64_t seed = 0;
};

train::MetricFields evaluate_mlp(const Options& options) {
  const train::Classifier classifier = train::load_classifier(options.model);
  data::Examples examples = read_examples(options.data, options.labels);
  require<FileError>(examples.features == classifier.sizes.front() && examples.classes <= classifier.sizes.back(),
                     "eval", Where(), options.data, " has rows of ", examples.features, " features and ",
                     examples.classes, " classes, ", options.model, " takes ", classifier.sizes.front(), " and tells ",
                     classifier.sizes.back(), " apart");
  classifier.standardizer.apply(examples);
  return train::evaluate(classifier, examples, cpu);
}

train::MetricFields evaluate_bert(const Options& options) {
  const std::string path = options.model + "/config.json";
  const models::BertConfig config = models::BertConfig::from_json(data::read_file(path), path);
  const data::WordPiece tokenizer = data::load_wordpiece(options.model);
  const data::Sequences text =
      data::make_sequences(data::read_documents(options.data), tokenizer, config.max_position_embeddings);
  const train::MaskedCorpus corpus{tokenizer, text, text};
  train::MaskedTask task(corpus, config, options.batch_size, options.seed);
  task.load(options.model);
  return task.evaluate();
}

/// What config.json says the model is; a damaged file is for the model's own reader to report.
bool is_mlp(const std::string& directory) {
  const nlohmann::json config = nlohmann::json::parse(data::read_file(directory + "/config.json"), nullptr, false);
  return config.is_object() && config.value("model_type", nlohmann::json()) == "mlp";
}

}  // namespace

void add_eval(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("eval", "loss and accuracy of a trained model: of a BERT on text files, of an MLP on rows");
  command->add_option("--data", options->data, "text: a file or a folder; rows: as for cinta train mlp")->required();
  command->add_option("--labels", options->labels, "IDX file of the classes, where --data is one of images");
  command->add_option("--model", options->model, "directory with model.safetensors and config.json")
      ->capture_default_str();
  command->add_option("--batch_size", options->batch_size)->capture_default_str()->check(at_least(1));
  command->add_option("--seed", options->seed, "of a BERT's masks")->capture_default_str();
  set_work(*command, [options] {
    const train::MetricFields numbers = is_mlp(options->model) ? evaluate_mlp(*options) : evaluate_bert(*options);
    for (const auto& [name, value] : numbers)
      if (const double* number = std::get_if<double>(&value)) std::printf("%s %.4f\n", name.c_str(), *number);
  });
}

}  // namespace cinta::tools
