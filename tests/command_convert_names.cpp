// `cinta convert --names`: between today's names, those of the first files, and a body alone, there and back.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cinta/models/bert/names.h"
#include "command_helpers.h"
#include "saved_model.h"

using namespace cinta;
using namespace cinta::models;
using namespace cinta::testing;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

struct Model : Saved<BertForPreTraining> {
  Model() : Saved(1) {}
  const std::string weights = directory + "/model.safetensors";
  /// The report of a conversion into the directory `to` beside the model.
  json convert(const std::string& from, const std::string& to, const Arguments& more) const {
    const Finished finished = run_cinta(Arguments{"convert", "--json", scratch / from, scratch / to} + more);
    INFO(finished.error);
    REQUIRE(finished.code == 0);
    return json::parse(finished.out);
  }
  std::string bytes(const std::string& name) const { return read_bytes(scratch / name + "/model.safetensors"); }
};

std::vector<float> numbers(const std::map<std::string, Tensor>& tensors, const std::string& name) {
  INFO(name);
  REQUIRE(tensors.contains(name));
  return to_vector<float>(tensors.at(name));
}

}  // namespace

TEST_CASE("a name in each kind", "[convert_names]") {
  constexpr BertNames hf = BertNames::hf, old = BertNames::old, bare = BertNames::bare;
  for (const char* name :
       {"bert.encoder.layer.0.output.LayerNorm.weight", "bert.encoder.layer.0.output.LayerNorm.gamma",
        "encoder.layer.0.output.LayerNorm.weight", "encoder.layer.0.output.LayerNorm.gamma"}) {
    CHECK(renamed(name, hf) == "bert.encoder.layer.0.output.LayerNorm.weight");
    CHECK(renamed(name, old) == "bert.encoder.layer.0.output.LayerNorm.gamma");
    CHECK(renamed(name, bare) == "encoder.layer.0.output.LayerNorm.weight");
  }
  CHECK(renamed("pooler.dense.bias", hf) == "bert.pooler.dense.bias");
  CHECK(renamed("cls.predictions.transform.LayerNorm.beta", hf) == "cls.predictions.transform.LayerNorm.bias");
  CHECK(renamed("cls.predictions.transform.LayerNorm.bias", old) == "cls.predictions.transform.LayerNorm.beta");
  CHECK(renamed("classifier.weight", bare) == std::nullopt);
  CHECK(renamed("vq.gamma", hf) == "vq.gamma");  // only a norm's
  CHECK(renamed("vq.beta", old) == "vq.beta");
}

TEST_CASE("convert to the old names and back gives the same bytes", "[convert_names]") {
  const Model model;
  const json report = model.convert("model", "old", {"--names", "old"});
  CHECK(report["renamed"] == 2 * (1 + 2 * 2 + 1));  // the embeddings' norm, two in each layer, the head's
  CHECK(report["left_out"].empty());
  CHECK(model.bytes("old") != model.bytes("model"));
  const auto before = read_tensors(model.weights), after = read_tensors(model.scratch / "old/model.safetensors");
  CHECK(numbers(after, "bert.embeddings.LayerNorm.gamma") == numbers(before, "bert.embeddings.LayerNorm.weight"));
  CHECK(numbers(after, "cls.predictions.transform.LayerNorm.beta") ==
        numbers(before, "cls.predictions.transform.LayerNorm.bias"));
  CHECK(read_bytes(model.scratch / "old/config.json") == read_bytes(model.directory + "/config.json"));
  model.convert("old", "back", {"--names", "hf"});
  CHECK(model.bytes("back") == model.bytes("model"));
  model.convert("model", "same", {"--names", "hf"});
  CHECK(model.bytes("same") == model.bytes("model"));
  model.convert("old", "shards", {"--names", "hf", "--max_shard_size", "2kB"});
  model.convert("shards", "whole", {"--to", "single"});
  CHECK(model.bytes("whole") == model.bytes("model"));
}

TEST_CASE("convert to a body alone leaves the heads out and says so; the body comes back", "[convert_names]") {
  const Model model;
  const json report = model.convert("model", "bare", {"--names", "bare"});
  CHECK(report["left_out"].size() == 5 + 2);  // of the masked-language head and of the next sentence's
  CHECK(json::parse(read_bytes(model.scratch / "bare/config.json"))["architectures"] == json{"BertModel"});
  const auto before = read_tensors(model.weights), bare = read_tensors(model.scratch / "bare/model.safetensors");
  CHECK(bare.size() == before.size() - 7);
  for (const auto& [name, tensor] : bare) CHECK(numbers(before, "bert." + name) == to_vector<float>(tensor));
  CHECK_THAT(run_cinta({"convert", model.directory, model.scratch / "again", "--names", "bare"}).out,
             Contains("left out: cls.seq_relationship.weight\n") && Contains(" renamed), "));

  model.convert("bare", "back", {"--names", "hf"});
  const auto back = read_tensors(model.scratch / "back/model.safetensors");
  CHECK(back.size() == bare.size());
  CHECK(numbers(back, "bert.pooler.dense.weight") == numbers(before, "bert.pooler.dense.weight"));
  BertForSequenceClassification classifier(small_config(), 2);
  CHECK(load_weights(classifier, model.scratch / "back", {"classifier."}).missing.size() == 2);
}

TEST_CASE("convert refuses names that no model has, and two tensors of one name", "[convert_names]") {
  const Model model;
  const float number = 1;
  const std::string file = model.scratch / "x.safetensors";
  const auto refused = [&](const std::string& names, const std::string& part) {
    const Finished finished = run_cinta({"convert", file, model.scratch / "new", "--names", names});
    CHECK(finished.code == 2);
    CHECK_THAT(finished.error, Contains(part));
    CHECK(!std::filesystem::exists(model.scratch / "new"));
  };
  data::save_safetensors(file, {{"layers.0.weight", Dtype::f32, {1}, &number}});
  refused("hf", "x.safetensors: --names is for a BERT");
  refused("bare", "x.safetensors: --names is for a BERT");
  refused("theirs", "theirs");
  data::save_safetensors(file, {{"bert.embeddings.LayerNorm.gamma", Dtype::f32, {1}, &number},
                                {"embeddings.LayerNorm.weight", Dtype::f32, {1}, &number}});
  refused("hf", "would be called bert.embeddings.LayerNorm.weight, and so would another tensor");
}
