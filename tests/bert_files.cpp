// Weights in files: the names that other programs use, what is missing or too much, and nothing changed by an error.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "bert_helpers.h"
#include "cinta/models/mlp.h"
#include "cinta/models/model_file.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::models;
using namespace cinta::testing;

namespace {

const std::string golden_weights = CINTA_SOURCE_DIR "/tests/golden/bert_weights.safetensors";

using Tensors = std::map<std::string, Tensor>;

void write(const std::string& path, const Tensors& tensors) {
  std::vector<NamedTensor> named;
  for (const auto& [name, tensor] : tensors) named.push_back({name, tensor});
  std::vector<Tensor> hold;
  data::save_safetensors(path, file_tensors(named, hold));
}

Tensors values(const Module& model) {
  Tensors out;
  for (const NamedTensor& named : model.named_tensors()) out[named.name] = contiguous(named.tensor);
  return out;
}

bool same(const Tensors& left, const Tensors& right) {
  return left.size() == right.size() && std::ranges::all_of(left, [&](const auto& item) {
           return right.contains(item.first) && to_vector<float>(item.second) == to_vector<float>(right.at(item.first));
         });
}

/// The golden weights with every name changed by `rename`; an empty name leaves the tensor out.
template <class Rename>
Tensors renamed(Rename rename) {
  Tensors out;
  for (const auto& [name, tensor] : read_tensors(golden_weights))
    if (const std::string other = rename(name); !other.empty()) out[other] = tensor;
  return out;
}

std::string replaced(std::string text, std::string_view old, std::string_view by) {
  const size_t at = text.find(old);
  return at == text.npos ? text : text.replace(at, old.size(), by);
}

bool starts(const std::string& name, std::string_view prefix) { return name.starts_with(prefix); }

}  // namespace

TEST_CASE("every tensor of a file reaches the parameter of its name", "[bert]") {
  BertForPreTraining model(small_config());
  const LoadReport report = load_weights(model, golden_weights);
  const Tensors file = read_tensors(golden_weights), here = values(model);
  CHECK(report.loaded.size() == here.size());
  CHECK(report.missing.empty());
  CHECK(report.unused == std::vector<std::string>{"classifier.bias", "classifier.weight"});
  CHECK(report.text().find("unused: classifier.bias") != std::string::npos);
  for (const auto& [name, tensor] : here) {
    INFO(name);
    CHECK(to_vector<float>(tensor) == to_vector<float>(file.at(name)));
  }
}

TEST_CASE("what is saved is loaded again, bit for bit", "[bert]") {
  const Scratch scratch;
  const BertForPreTraining one(small_config(), 1);
  BertForPreTraining other(small_config(), 2);
  CHECK(!same(values(one), values(other)));
  save_weights(one, scratch / "model.safetensors");
  CHECK(load_weights(other, scratch / "model.safetensors").unused.empty());
  CHECK(same(values(one), values(other)));
}

TEST_CASE("a loaded model keeps its ties, its leaves and its seats on the tape", "[bert]") {
  BertForMaskedLM model(small_config());
  const auto before = model.parameters();
  load_weights(model, golden_weights);
  const auto after = model.parameters();
  REQUIRE(before.size() == after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    CHECK(before[i].tensor.slot == after[i].tensor.slot);
    CHECK(before[i].tensor.storage() == after[i].tensor.storage());
  }
  // The word table serves as output weights too, and is counted and saved once.
  CHECK(std::ranges::count_if(after, [](const auto& p) { return p.tensor.shape() == Shape{61, 20}; }) == 1);
}

TEST_CASE("files of other programs: old names, other prefixes, narrow types", "[bert]") {
  const Scratch scratch;
  const std::string path = scratch / "model.safetensors";
  BertForMaskedLM expected(small_config()), model(small_config(), 5);
  load_weights(expected, golden_weights);

  SECTION("gamma and beta") {
    write(path, renamed([](const std::string& name) {
            return replaced(replaced(name, "LayerNorm.weight", "LayerNorm.gamma"), "LayerNorm.bias", "LayerNorm.beta");
          }));
    CHECK(load_weights(model, path).missing.empty());
    CHECK(same(values(model), values(expected)));
  }
  SECTION("a body saved alone has no prefix, and its head is trained anew") {
    write(path, renamed([](const std::string& name) { return starts(name, "bert.") ? name.substr(5) : ""; }));
    const Tensors before = values(model), body = values(expected);
    const LoadReport report = load_weights(model, path, {"cls."});
    for (const auto& [name, tensor] : values(model)) {
      INFO(name);
      CHECK(to_vector<float>(tensor) == to_vector<float>((starts(name, "cls.") ? before : body).at(name)));
    }
    CHECK(report.missing.size() == 5);
    CHECK(report.text().find("missing, left as initialised: cls.predictions.bias") != std::string::npos);
    CHECK(report.unused == std::vector<std::string>{"pooler.dense.bias", "pooler.dense.weight"});
    const std::string error = error_of<FileError>([&] { load_weights(model, path); });
    CHECK(error.find("cls.predictions") != std::string::npos);
    CHECK(error.find(path) != std::string::npos);
  }
  SECTION("tied copies and position numbers are no surprise") {
    Tensors tensors = renamed([](const std::string& name) { return starts(name, "classifier") ? "" : name; });
    tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"];
    tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"];
    tensors["bert.embeddings.position_ids"] = from_values(std::vector<int64_t>{0, 1, 2}, {1, 3});
    write(path, tensors);
    BertForPreTraining both(small_config());
    CHECK(load_weights(both, path).unused.empty());
  }
  SECTION("half precision is widened") {
    Tensors tensors = read_tensors(golden_weights);
    for (auto& [name, tensor] : tensors) tensor = cast(tensor, Dtype::bf16);
    write(path, tensors);
    load_weights(model, path);
    for (const auto& [name, tensor] : values(model)) {
      CHECK(tensor.dtype() == Dtype::f32);
      CHECK(to_vector<float>(tensor) == to_vector<float>(tensors.at(name)));
    }
  }
}

TEST_CASE("a file that does not fit changes nothing and says what is wrong", "[bert]") {
  const Scratch scratch;
  const std::string path = scratch / "model.safetensors";
  BertForMaskedLM model(small_config(), 5);
  const Tensors before = values(model);
  Tensors tensors = read_tensors(golden_weights);
  std::vector<std::string> wanted{path};

  SECTION("another shape") {
    tensors["cls.predictions.transform.LayerNorm.weight"] = zeros({21});
    wanted.insert(wanted.end(), {"cls.predictions.transform.LayerNorm.weight", "[21]", "[20]"});
  }
  SECTION("whole numbers") {
    tensors["cls.predictions.transform.LayerNorm.weight"] = zeros({20}, Dtype::i64);
    wanted.insert(wanted.end(), {"cls.predictions.transform.LayerNorm.weight", "i64"});
  }
  SECTION("several at once, all of them named") {
    tensors["cls.predictions.bias"] = zeros({62});
    tensors["bert.encoder.layer.0.output.LayerNorm.bias"] = zeros({21});
    tensors.erase("bert.encoder.layer.1.attention.self.value.bias");
    wanted.insert(wanted.end(), {"cls.predictions.bias", "bert.encoder.layer.0.output.LayerNorm.bias",
                                 "bert.encoder.layer.1.attention.self.value.bias"});
  }
  SECTION("one tensor less") {
    tensors.erase("bert.encoder.layer.1.attention.self.value.bias");
    wanted.push_back("bert.encoder.layer.1.attention.self.value.bias");
  }
  SECTION("the same weight under an old and a new name") {
    tensors["bert.embeddings.LayerNorm.gamma"] = zeros({20});
    wanted.push_back("bert.embeddings.LayerNorm.weight");
  }
  SECTION("the same weight with and without its prefix") {
    tensors["embeddings.LayerNorm.weight"] = zeros({20});
    wanted.push_back("embeddings.LayerNorm.weight");
  }
  write(path, tensors);
  const std::string error = error_of<FileError>([&] { load_weights(model, path); });
  for (const std::string& part : wanted) {
    INFO(error);
    CHECK(error.find(part) != std::string::npos);
  }
  CHECK(same(values(model), before));
}

TEST_CASE("a configuration goes through its file unchanged", "[bert]") {
  BertConfig config = small_config(0.2);
  config.hidden_act = "gelu_new";
  const BertConfig read = BertConfig::from_json(config.to_json("BertForSequenceClassification"), "config.json");
  CHECK(difference(config, read).empty());
  CHECK(read.num_labels == 3);
  config.pad_token_id = -1;  // none, which Python users write as null
  const std::string text = config.to_json("BertForMaskedLM");
  CHECK(text.find(R"("pad_token_id": null)") != std::string::npos);
  CHECK(difference(config, BertConfig::from_json(text, "config.json")).empty());
  CHECK(text.find(R"("classifier_dropout": null)") != std::string::npos);
  config.classifier_dropout = 0.3;
  CHECK(BertConfig::from_json(config.to_json("BertModel"), "config.json").classifier_dropout == 0.3);
  BertConfig other = config;
  other.hidden_size = 24;
  CHECK(difference(config, other) == "hidden_size: 20 in the file, 24 here");
}

TEST_CASE("a configuration has the labels that transformers reads", "[bert]") {
  const auto read = [](const char* text) { return BertConfig::from_json(text, "config.json"); };
  const BertConfig numbered = read(R"({"num_labels": 5})");
  CHECK(numbered.num_labels == 5);
  CHECK(numbered.label_names.empty());
  CHECK(read(R"({"num_labels": 5, "id2label": null})").num_labels == 5);
  CHECK(read(R"({"num_labels": 2, "id2label": {"0": "a", "1": "b"}})").label_name(1) == "b");
}

TEST_CASE("a configuration that cannot be is refused by key", "[bert]") {
  struct Case {
    const char *text, *wanted;
  };
  for (const Case& one : {
           Case{"", "not JSON"},
           Case{"[1]", "not a JSON object"},
           Case{R"({"model_type": "gpt2"})", "model_type is \"gpt2\""},
           Case{R"({"position_embedding_type": "relative_key"})", "position_embedding_type"},
           Case{R"({"is_decoder": true})", "is_decoder"},
           Case{R"({"tie_word_embeddings": false})", "tie_word_embeddings"},
           Case{R"({"hidden_size": "20"})", "hidden_size has the wrong kind"},
           Case{R"({"hidden_size": 20.5})", "hidden_size has the wrong kind"},
           Case{R"({"hidden_size": 20, "num_attention_heads": 3})", "multiple of num_attention_heads"},
           Case{R"({"hidden_act": "swish7"})", "hidden_act is gelu"},
           Case{R"({"hidden_dropout_prob": 1.0})", "hidden_dropout_prob"},
           Case{R"({"classifier_dropout": 1.0})", "classifier_dropout lies in [0, 1), given 1"},
           Case{R"({"classifier_dropout": "0.1"})", "classifier_dropout has the wrong kind"},
           Case{R"({"vocab_size": 0})", "vocab_size lies in [1, "},
           Case{R"({"layer_norm_eps": 0})", "layer_norm_eps"},
           Case{R"({"layer_norm_eps": 1e-60})", "layer_norm_eps is positive and finite in f32, given 1e-60"},
           Case{R"({"layer_norm_eps": 1e60})", "layer_norm_eps is positive and finite in f32, given 1e+60"},
           Case{R"({"num_labels": 0})", "num_labels lies in [1, "},
           Case{R"({"num_labels": "3"})", "num_labels has the wrong kind"},
           Case{R"({"vocab_size": 99999999999999999999})", "vocab_size"},
           Case{R"({"id2label": {}})", "num_labels"},
       }) {
    const std::string error = error_of<FileError>([&] { BertConfig::from_json(one.text, "some/config.json"); });
    INFO(one.text << " -> " << error);
    CHECK(error.find(one.wanted) != std::string::npos);
    CHECK(error.find("some/config.json") != std::string::npos);
  }
  CHECK(error_of<ValueError>([] { BertConfig::named("huge"); }).find("tiny, mini, small, base, large") !=
        std::string::npos);
}
