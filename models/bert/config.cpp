// Reading, writing and checking config.json.
#include "cinta/models/bert/config.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "cinta/data/file.h"
#include "cinta/data/strict_json.h"

namespace cinta::models {
namespace {

/// Calls visit(key, member) for every key that describes the model: reading, writing and comparing share this list.
template <class Config, class Visit>
void each_key(Config& config, Visit&& visit) {
  visit("vocab_size", config.vocab_size);
  visit("hidden_size", config.hidden_size);
  visit("num_hidden_layers", config.num_hidden_layers);
  visit("num_attention_heads", config.num_attention_heads);
  visit("intermediate_size", config.intermediate_size);
  visit("hidden_act", config.hidden_act);
  visit("hidden_dropout_prob", config.hidden_dropout_prob);
  visit("attention_probs_dropout_prob", config.attention_probs_dropout_prob);
  visit("classifier_dropout", config.classifier_dropout);
  visit("max_position_embeddings", config.max_position_embeddings);
  visit("type_vocab_size", config.type_vocab_size);
  visit("initializer_range", config.initializer_range);
  visit("layer_norm_eps", config.layer_norm_eps);
  visit("pad_token_id", config.pad_token_id);
}

bool right_kind(const nlohmann::json& value, int64_t) { return value.is_number_integer(); }
bool right_kind(const nlohmann::json& value, double) { return value.is_number(); }
bool right_kind(const nlohmann::json& value, const std::string&) { return value.is_string(); }

}  // namespace

BertConfig BertConfig::named(std::string_view name, Where where) {
  struct Size {
    std::string_view name;
    int64_t layers, hidden, heads;
  };
  constexpr Size sizes[] = {
      {"tiny", 2, 128, 2}, {"mini", 4, 256, 4}, {"small", 4, 512, 8}, {"base", 12, 768, 12}, {"large", 24, 1024, 16}};
  for (const Size& size : sizes) {
    if (size.name != name) continue;
    BertConfig config;
    config.num_hidden_layers = size.layers;
    config.hidden_size = size.hidden;
    config.num_attention_heads = size.heads;
    config.intermediate_size = 4 * size.hidden;
    return config;
  }
  throw ValueError(
      located("bert", join("no size is called '", name, "'; there are tiny, mini, small, base, large"), where));
}

double BertConfig::scaled_initializer_range() const { return 0.02 * std::sqrt(768 / static_cast<double>(hidden_size)); }

void BertConfig::check(Where where) const {
  // The upper bounds are far above any model, and keep a damaged file from asking for all memory.
  auto within = [&](const char* key, int64_t value, int64_t least, int64_t most) {
    require(value >= least && value <= most, "bert", where, key, " lies in [", least, ", ", most, "], given ", value);
  };
  within("vocab_size", vocab_size, 1, int64_t{1} << 24);
  within("hidden_size", hidden_size, 1, int64_t{1} << 16);
  within("num_hidden_layers", num_hidden_layers, 0, 1000);
  within("num_attention_heads", num_attention_heads, 1, int64_t{1} << 16);
  within("intermediate_size", intermediate_size, 1, int64_t{1} << 20);
  within("max_position_embeddings", max_position_embeddings, 1, int64_t{1} << 24);
  within("type_vocab_size", type_vocab_size, 1, int64_t{1} << 16);
  within("num_labels", num_labels, 1, int64_t{1} << 24);
  require(label_names.empty() || static_cast<int64_t>(label_names.size()) == num_labels, "bert", where,
          "num_labels is ", num_labels, ", but there are ", label_names.size(), " label names");
  require(hidden_size % num_attention_heads == 0, "bert", where,
          "hidden_size is a multiple of num_attention_heads: ", hidden_size, " % ", num_attention_heads, " = ",
          hidden_size % num_attention_heads);
  auto probability = [&](const char* key, double value) {
    require(value >= 0 && value < 1, "bert", where, key, " lies in [0, 1), given ", value);
  };
  probability("hidden_dropout_prob", hidden_dropout_prob);
  probability("attention_probs_dropout_prob", attention_probs_dropout_prob);
  if (classifier_dropout != -1) probability("classifier_dropout", classifier_dropout);
  const auto eps = static_cast<float>(layer_norm_eps);
  require(eps > 0 && std::isfinite(eps), "bert", where, "layer_norm_eps is positive and finite in f32, given ",
          layer_norm_eps);
  activation(where);
}

Activation BertConfig::activation(Where where) const {
  if (hidden_act == "gelu") return Activation::gelu;
  if (hidden_act == "gelu_new" || hidden_act == "gelu_pytorch_tanh") return Activation::gelu_tanh;
  if (hidden_act == "relu") return Activation::relu;
  if (hidden_act == "silu") return Activation::silu;
  throw ValueError(
      located("bert", join("hidden_act is gelu, gelu_new, relu or silu, given '", hidden_act, "'"), where));
}

std::string BertConfig::label_name(int64_t label) const {
  return label_names.empty() ? "LABEL_" + std::to_string(label) : label_names.at(static_cast<size_t>(label));
}

std::string BertConfig::other_task() const {
  if (!problem_type.empty() && problem_type != "single_label_classification") return "problem_type is " + problem_type;
  return num_labels == 1 ? "num_labels is 1" : "";
}

void BertConfig::require_one_of_labels(const std::string& directory, Where where) const {
  require<FileError>(other_task().empty(), "config", where, directory, "/config.json: ", other_task(),
                     ", expected a choice of one of several labels; cinta predict --output_logits FILE takes what the "
                     "model computes");
}

std::string BertConfig::to_json(std::string_view architecture) const {
  nlohmann::ordered_json out;
  out["architectures"] = {architecture};
  out["model_type"] = "bert";
  each_key(*this, [&](const char* key, const auto& value) { out[key] = value; });
  if (pad_token_id < 0) out["pad_token_id"] = nullptr;
  if (classifier_dropout < 0) out["classifier_dropout"] = nullptr;
  out["position_embedding_type"] = "absolute";
  if (architecture == "BertForSequenceClassification") {
    for (int64_t i = 0; i < num_labels; ++i) out["id2label"][std::to_string(i)] = label_name(i);
    for (int64_t i = 0; i < num_labels; ++i) out["label2id"][label_name(i)] = i;
  }
  return out.dump(2) + "\n";
}

BertConfig BertConfig::from_json(const std::string& text, const std::string& path, Where where) {
  nlohmann::json in = data::parse_json_object(text, "config", path, where);
  for (const char* key : {"pad_token_id", "classifier_dropout"})
    if (const auto none = in.find(key); none != in.end() && none->is_null()) *none = -1;
  auto expect = [&](const char* key, const nlohmann::json& wanted) {
    if (in.contains(key))
      require<FileError>(in[key] == wanted, "config", where, path, ": ", key, " is ", in[key].dump(), ", only ",
                         wanted.dump(), " is supported");
  };
  expect("model_type", "bert");
  expect("position_embedding_type", "absolute");
  expect("is_decoder", false);
  expect("tie_word_embeddings", true);
  BertConfig config;
  const auto read = [&](const char* key, auto& value) {
    if (!in.contains(key)) return;
    require<FileError>(right_kind(in[key], value), "config", where, path, ": ", key,
                       " has the wrong kind: ", in[key].dump());
    in[key].get_to(value);
  };
  each_key(config, read);
  if (in.contains("problem_type") && in["problem_type"].is_string()) config.problem_type = in["problem_type"];
  // Names of labels, where there are some, say how many there are, as transformers takes it.
  const bool named = in.contains("id2label") && in["id2label"].is_object();
  if (!named) read("num_labels", config.num_labels);
  if (named) {
    config.num_labels = static_cast<int64_t>(in["id2label"].size());
    for (int64_t i = 0; i < config.num_labels; ++i) {
      const auto name = in["id2label"].find(std::to_string(i));
      require<FileError>(name != in["id2label"].end() && name->is_string(), "config", where, path,
                         ": id2label has no name for ", i);
      config.label_names.push_back(name->get<std::string>());
    }
  }
  try {
    config.check(where);
  } catch (const ValueError& error) {
    throw FileError(join(path, ": ", error.text()));
  }
  return config;
}

std::string difference(const BertConfig& file, const BertConfig& here) {
  nlohmann::json left, right;
  each_key(file, [&](const char* key, const auto& value) { left[key] = value; });
  each_key(here, [&](const char* key, const auto& value) { right[key] = value; });
  std::string out;
  for (const auto& [key, value] : left.items())
    if (value != right[key])
      out += join(out.empty() ? "" : "; ", key, ": ", value.dump(), " in the file, ", right[key].dump(), " here");
  return out;
}

BertConfig read_config(const std::string& directory, Where where) {
  const std::string path = directory + "/config.json";
  return BertConfig::from_json(data::read_file(path, data::maximum_file_bytes, where), path, where);
}

void require_same(const std::string& directory, const BertConfig& here, Where where) {
  const std::string differences = difference(read_config(directory, where), here);
  require<FileError>(differences.empty(), "config", where, directory,
                     "/config.json describes another model: ", differences);
}

}  // namespace cinta::models
