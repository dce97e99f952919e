// `cinta predict`: what a trained model computes on new data.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cinta/autograd/mode.h"
#include "cinta/data/file.h"
#include "cinta/data/idx.h"
#include "cinta/data/safetensors.h"
#include "cinta/models/model_file.h"
#include "cinta/ops/shape.h"
#include "cinta/ops/softmax.h"
#include "cinta/train/classifier.h"
#include "cinta/train/text_classes.h"
#include "cinta/train/text_classify_task.h"
#include "tools/bert_outputs.h"
#include "tools/commands.h"
#include "tools/read_examples.h"
#include "tools/settings_file.h"
#include "tools/text_options.h"
#include "tools/train_options.h"

namespace cinta::tools {
namespace {

struct Options {
  ModelOptions model;
  std::string input_ids, output_logits, data;
  std::vector<std::string> texts, pairs;
  int64_t batch_size = 32;
  TextOptions reading;
  bool as_json = false;
};

constexpr const char* passed_over = ": its labels are passed over; cinta eval compares with them";

/// The texts of the command line or of a file; pairs, where these are.
data::LabelledText read_texts(const Options& options, const models::BertConfig& config) {
  if (!options.data.empty()) {
    data::LabelledText texts = data::read_texts(options.data, options.reading.bad_utf8(), train::spoken_names(config));
    if (!texts.note.empty()) options.model.note(options.data + ": " + texts.note);
    train::require_segments(texts, config, options.data);
    if (!texts.labels.empty()) options.model.note(options.data + passed_over);
    return texts;
  }
  data::LabelledText texts{options.texts, options.pairs, {}};
  train::require_segments(texts, config, "--text_pair");
  for (auto* part : {&texts.first, &texts.second})
    for (std::string& text : *part) text = options.reading.utf8(std::move(text));
  return texts;
}

/// Rows of numbers as a classifier of so many features takes them: an IDX file of images, or a CSV, with anything in a
/// last column, where labels stand, or without it.
data::Examples read_rows(const Options& options, int64_t features) {
  const std::string& path = options.data;
  const std::string bytes = data::read_file(path);
  if (!data::looks_like_idx(bytes)) {
    const data::Table table = data::parse_csv(bytes, path, {.unread = features + 1});
    require<FileError>(table.columns == features || table.columns == features + 1, "predict", Where(), path, ": found ",
                       table.columns, " columns, expected ", features, ", or one more with the class");
    if (table.has_header()) options.model.note(path + header_note);
    if (table.columns > features) options.model.note(path + passed_over);
    data::Examples out{table.rows, features, 0, {}, {}};
    for (auto row = table.values.begin(); row != table.values.end(); row += table.columns)
      out.inputs.insert(out.inputs.end(), row, row + features);
    return out;
  }
  data::IdxArray images = data::parse_idx(bytes, path);
  const int64_t count = images.sizes.front();
  require<FileError>(static_cast<int64_t>(images.values.size()) == count * features, "predict", Where(), path,
                     ": images have ", features, " pixels, found ", count, " images with ", images.values.size());
  return {count, features, 0, std::move(images.values), {}};
}

Outputs run_mlp(const Options& options) {
  const auto [classifier, report] = train::load_classifier(options.model.directory);
  options.model.note(report);
  data::Examples rows = read_rows(options, classifier.sizes.front());
  require<FileError>(rows.count > 0, "predict", Where(), options.data, ": has no rows");
  classifier.standardizer.apply(rows);
  const Tensor inputs = from_values(rows.inputs_f32(), {rows.count, rows.features});
  std::vector<Tensor> parts;
  for (int64_t begin = 0; begin < rows.count; begin += options.batch_size)
    parts.push_back((*classifier.mlp)(slice(inputs, 0, begin, std::min(begin + options.batch_size, rows.count))));
  return {{"logits", concat(parts, 0)}};
}

/// The most likely class of each row, and how likely. `names` may be empty: classes are numbers then.
void print_classes(const Tensor& logits, const std::vector<std::string>& names, bool as_json) {
  const std::vector<float> probabilities = to_vector<float>(softmax(logits));
  const size_t classes = static_cast<size_t>(logits.size(-1));
  for (size_t begin = 0; begin < probabilities.size(); begin += classes) {
    const auto row = std::span(probabilities).subspan(begin, classes);
    const auto best = static_cast<size_t>(std::ranges::max_element(row) - row.begin());
    const std::string name = names.empty() ? std::to_string(best) : names[best];
    if (as_json)
      std::printf("%s\n",
                  nlohmann::ordered_json{{"class", best}, {"label", name}, {"probabilities", row}}.dump().c_str());
    else
      std::printf("%5.1f %%  %s\n", 100.0 * row[best], name.c_str());
  }
}

void predict(const Options& options) {
  const autograd::NoGrad off;
  const std::string architecture = models::model_name(options.model.directory);
  const bool mlp = architecture == "mlp";
  require<FileError>(mlp || has_outputs(architecture), "predict", Where(), options.model.directory,
                     "/config.json: describes neither an MLP nor a BERT with a known head: found '", architecture,
                     "', expected BertForMaskedLM, BertForPreTraining, BertForSequenceClassification or BertModel");
  const int inputs = !options.input_ids.empty() + !options.data.empty() + !options.texts.empty();
  require(inputs == 1, "predict", Where(), "one of --text, --data and --input_ids, given ", inputs);
  require(options.pairs.empty() || options.pairs.size() == options.texts.size(), "predict", Where(),
          "a --text_pair for each --text, given ", options.pairs.size(), " and ", options.texts.size());
  require(!mlp || !options.data.empty(), "predict", Where(), "an MLP reads rows of numbers: --data FILE.csv");
  const models::BertConfig config = mlp ? models::BertConfig() : models::read_config(options.model.directory);
  const bool classifies = architecture == "BertForSequenceClassification";
  if (classifies && options.output_logits.empty()) config.require_one_of_labels(options.model.directory, Where());
  Outputs outputs;
  if (mlp) {
    outputs = run_mlp(options);
  } else if (!options.input_ids.empty()) {
    const models::TokenBatch tokens = read_tokens(options.input_ids, config);
    outputs = run_bert(options.model, architecture, config, tokens, options.batch_size);
  } else {
    const data::WordPiece tokenizer = options.reading.load_tokenizer(options.model, config);
    const models::TokenBatch tokens =
        encode(read_texts(options, config), tokenizer, config.max_position_embeddings, options.model);
    outputs = run_bert(options.model, architecture, config, tokens, options.batch_size);
  }
  if (!options.output_logits.empty()) {
    std::vector<Tensor> hold;
    data::save_safetensors(options.output_logits, models::file_tensors(outputs, hold));
  }
  const Tensor& logits = outputs.front().tensor;
  require(
      logits.rank() == 2 || !options.output_logits.empty(), "predict", Where(),
      "this model computes something for every token: --output_logits FILE.safetensors takes it, cinta fill reads a "
      "masked-language model's");
  if (logits.rank() == 2 && config.other_task().empty()) print_classes(logits, config.label_names, options.as_json);
}

}  // namespace

void add_predict(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("predict", "what a trained model computes: classes, or logits as a file");
  options->model.add_to(*command)->required();
  command->add_option("--text", options->texts, "a text, for a BERT; again for each further one")
      ->allow_extra_args(false);  // the parser would take [a, b] apart
  command->add_option("--text_pair", options->pairs, "the second text of a pair, one for each --text")
      ->allow_extra_args(false);
  command->add_option(
      "--data", options->data,
      "a file of texts or pairs, as for cinta train classify, labels passed over; of another ending "
      "than .csv, .tsv and .jsonl, one text a line; for an MLP a CSV of its features, with or without the class behind "
      "them, or an IDX file of images");
  command->add_option("--input_ids", options->input_ids,
                      "safetensors file with input_ids, and perhaps attention_mask and token_type_ids");
  command->add_option(
      "--output_logits", options->output_logits,
      "safetensors file for the logits; of a BertModel, last_hidden_state and pooler_output; what stands at "
      "padded positions means nothing and is not what transformers has there");
  command->add_option("--batch_size", options->batch_size, "samples computed at once")
      ->capture_default_str()
      ->check(at_least(1));
  options->reading.add_to(*command);
  options->reading.add_final_sigma(*command);
  command->add_flag("--json", options->as_json, "an object a line");
  set_work(*command, [options, command] {
    for (const char* option : {"on_bad_utf8", "final_sigma"})
      require_effect(*command, option, options->input_ids.empty(), "with --input_ids");
    refuse_text_options(*command, models::model_name(options->model.directory, Where()));
    predict(*options);
  });
}

}  // namespace cinta::tools
