// Sharded safetensors: what an index and its shards must be to be read, how tensors are dealt to shards, and models
// loaded from them. What Python writes and reads is compared in tests/interop/sharded.py.
#include "cinta/data/sharded_safetensors.h"

#include <catch2/catch.hpp>

#include "bert_helpers.h"
#include "cinta/data/safetensors_index.h"
#include "cinta/models/model_file.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::data;
using namespace cinta::testing;
using Catch::Matchers::Contains;

namespace {

const float numbers[] = {1, 2, 3, 4, 5, 6};

TensorBytes piece(const std::string& name, int64_t count) { return {name, Dtype::f32, {count}, numbers}; }

/// A model of three tensors in two shards, and its index.
struct TwoShards {
  Scratch scratch;
  const std::string index = scratch / weights_index;
  const std::string text = R"({"metadata": {"total_size": 40, "format": "pt"}, "weight_map": )"
                           R"({"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"}})";
  TwoShards() {
    save_safetensors(scratch / "one.safetensors", {piece("a", 1), piece("b", 3)});
    save_safetensors(scratch / "two.safetensors", {piece("c", 6)});
    write_bytes(index, text);
  }
  std::string error(const std::string& path) const {
    return error_of<FileError>([&] { SafetensorsSet::open(path); });
  }
  /// What is said of the index with one part of its text replaced.
  std::string error(const std::string& part, const std::string& by) const {
    const size_t at = text.find(part);
    REQUIRE(at != text.npos);
    write_bytes(index, std::string(text).replace(at, part.size(), by));
    return error(scratch.path());
  }
};

}  // namespace

TEST_CASE("sharded: tensors are found in all files, through the directory, the index or one file",
          "[sharded_safetensors]") {
  const TwoShards model;
  for (const std::string& path : {model.scratch.path(), model.index}) {
    const SafetensorsSet set = SafetensorsSet::open(path);
    CHECK(set.path() == model.index);
    REQUIRE(set.tensors().size() == 3);
    float read[6] = {};
    set.tensors()[2].read(read);
    CHECK(set.tensors()[2].entry->name == "c");
    CHECK(std::ranges::equal(read, numbers));
  }
  CHECK(SafetensorsSet::open(model.scratch / "two.safetensors").tensors().size() == 1);
  save_safetensors(model.scratch / weights_file, {piece("whole", 2)});
  CHECK(SafetensorsSet::open(model.scratch.path()).path() == model.scratch / weights_file);
  const Scratch empty;
  CHECK_THAT(model.error(empty.path()), Contains("/model.safetensors: cannot be opened"));
}

TEST_CASE("sharded: an index that its shards contradict is refused", "[sharded_safetensors]") {
  const TwoShards model;
  REQUIRE(model.error(model.index) == "no error");
  CHECK_THAT(model.error("40", "44"), Contains("index.json: metadata: found the total_size 44, expected 40"));
  CHECK_THAT(model.error("40", "36"), Contains("total_size 36, expected 40"));
  CHECK(model.error("\"total_size\": 40, ", "") == "no error");
  CHECK_THAT(model.error(", \"c\": \"two.safetensors\"", ""), Contains("total_size 40, expected 16"));
  CHECK_THAT(model.error(", \"b\": \"one.safetensors\"", ""),
             Contains("one.safetensors: found the tensor 'b', which ") && Contains("does not name"));
  CHECK_THAT(model.error("\"c\": \"two", "\"c\": \"one"), Contains("one.safetensors: found no tensor 'c'"));
  CHECK_THAT(model.error("\"b\": \"one", "\"b\": \"two"), Contains("one.safetensors: found the tensor 'b', expected"));
  CHECK_THAT(model.error("\"c\"", "\"d\": \"two.safetensors\", \"c\""),
             Contains("two.safetensors: found no tensor 'd'"));
  CHECK_THAT(model.error("two.safe", "six.safe"), Contains("six.safetensors: cannot be opened"));
  write_bytes(model.index, model.text);
  save_safetensors(model.scratch / "two.safetensors", {piece("c", 5)});
  CHECK_THAT(model.error(model.index), Contains("total_size 40, expected 36"));
  std::filesystem::resize_file(model.scratch / "two.safetensors", 50);
  CHECK_THAT(model.error(model.index), Contains("two.safetensors: ") && Contains("truncated"));
}

TEST_CASE("a directory with pickled weights alone is told what to do", "[sharded_safetensors]") {
  const Scratch scratch;
  write_bytes(scratch / "pytorch_model.bin", "PK");
  const std::string error = error_of<FileError>([&] { SafetensorsSet::open(scratch.path()); });
  CHECK(error.find("pytorch_model.bin: is not read") != std::string::npos);
  CHECK(error.find("save_pretrained() writes the same model as model.safetensors") != std::string::npos);
  write_bytes(scratch / "model.safetensors", "PK");
  CHECK(error_of<FileError>([&] { SafetensorsSet::open(scratch.path()); }).find("pytorch") == std::string::npos);
}

TEST_CASE("sharded: a damaged index is refused, and one that leads out of its directory", "[sharded_safetensors]") {
  const TwoShards model;
  for (size_t length = 0; length < model.text.size(); ++length) {
    write_bytes(model.index, model.text.substr(0, length));
    INFO(length);
    CHECK_THAT(model.error(model.index), Contains("index.json: is not JSON: "));
  }
  for (const char* name : {"../two.safetensors", "/two.safetensors", "sub/two.safetensors", "a\\\\two.safetensors"})
    CHECK_THAT(model.error("two.safetensors", name), Contains("has a slash"));
  CHECK_THAT(model.error("two.safetensors", ".two.safetensors"), Contains("begins with a dot"));
  CHECK_THAT(model.error("two.safetensors", "two.bin"), Contains("'c': found 'two.bin', which does not end in"));
  CHECK_THAT(model.error("two.safetensors", "two\\u0000.safetensors"), Contains("has a control character"));
  CHECK_THAT(model.error("\"two.safetensors\"", "2"), Contains("'c': found number, expected the name of a file"));
  CHECK_THAT(model.error("\"b\"", "\"a\""), Contains("found the key 'a' twice"));
  CHECK_THAT(model.error("\"b\"", "\"\\u0061\""), Contains("found the key 'a' twice"));
  CHECK_THAT(model.error("\"format\"", "\"total_size\""), Contains("found the key 'total_size' twice"));
  CHECK_THAT(model.error("weight_map", "weights"), Contains("found the key 'weights'"));
  CHECK_THAT(model.error("{\"metadata\"", "[{\"metadata\""), Contains("is not JSON"));
  for (const char* size : {"40.0", "-40", "\"40\"", "18446744073709551616", "{}"})
    CHECK_THAT(model.error("40", size), Contains("metadata: total_size: found ") && Contains("a number of bytes"));
  for (const char* text : {"[]", "3", "null", "\"x\""}) {
    write_bytes(model.index, text);
    CHECK_THAT(model.error(model.index), Contains("expected an object with metadata and weight_map"));
  }
  write_bytes(model.index, R"({"metadata": {}})");
  CHECK_THAT(model.error(model.index), Contains("found no weight_map"));
  write_bytes(model.index, R"({"weight_map": []})");
  CHECK_THAT(model.error(model.index), Contains("weight_map: found array, expected an object"));
  write_bytes(model.index, model.text + '\0');
  CHECK_THAT(model.error(model.index), Contains("found a NUL"));
  write_bytes(model.index, "\xEF\xBB\xBF" + model.text);
  CHECK_THAT(model.error(model.index), Contains("byte order mark"));
  write_bytes(model.index, std::string(100000, '['));
  CHECK_THAT(model.error(model.index), Contains("more than 64 deep in each other"));
}

TEST_CASE("sharded: tensors are dealt in their order, none above the limit but a large one alone",
          "[sharded_safetensors]") {
  const std::vector<uint64_t> sizes = {4, 6, 1, 30, 0, 10, 3};
  const std::vector<Shard> shards = deal_shards(sizes, 10);
  REQUIRE(shards.size() == 5);
  const std::vector<std::vector<size_t>> expected = {{0, 1}, {2}, {3, 4}, {5}, {6}};
  for (size_t i = 0; i < shards.size(); ++i) CHECK(shards[i].tensors == expected[i]);
  CHECK(shards[1].name == "model-00002-of-00005.safetensors");
  CHECK(deal_shards(sizes, UINT64_MAX).size() == 1);
  CHECK(deal_shards({}, 10).size() == 1);

  const std::vector<std::string> names = {"b", "a", "c", "d", "e", "f", "g"};
  const SafetensorsIndex index = parse_safetensors_index(safetensors_index_text(shards, names, 54), "text");
  CHECK(index.total_size == 54);
  REQUIRE(index.shards.size() == names.size());
  for (const Shard& shard : shards)
    for (size_t tensor : shard.tensors) CHECK(index.shards.at(names[tensor]) == shard.name);
}

TEST_CASE("sharded: a model is loaded from a directory in either form", "[sharded_safetensors]") {
  models::BertForMaskedLM saved(small_config(), 1), loaded(small_config(), 2);
  const Scratch scratch;
  std::vector<Tensor> hold;
  const std::vector<TensorBytes> tensors = models::file_tensors(saved.named_tensors(), hold);
  std::vector<uint64_t> sizes;
  std::vector<std::string> names;
  uint64_t total = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    sizes.push_back(uint64_t(hold[i].bytes()));
    names.push_back(tensors[i].name);
    total += sizes.back();
  }
  const std::vector<Shard> shards = deal_shards(sizes, 4000);
  REQUIRE(shards.size() > 3);
  for (const Shard& shard : shards) {
    std::vector<TensorBytes> part;
    for (size_t tensor : shard.tensors) part.push_back(tensors[tensor]);
    save_safetensors(scratch / shard.name, part);
  }
  write_bytes(scratch / weights_index, safetensors_index_text(shards, names, total));
  const models::LoadReport report = models::load_weights(loaded, scratch.path());
  CHECK(report.unused.empty());
  const auto before = saved.named_tensors(), after = loaded.named_tensors();
  for (size_t i = 0; i < before.size(); ++i)
    CHECK(to_vector<float>(before[i].tensor) == to_vector<float>(after[i].tensor));
  std::filesystem::remove(scratch / shards[2].name);
  CHECK_THAT(error_of<FileError>([&] { models::load_weights(loaded, scratch.path()); }),
             Contains(shards[2].name + ": cannot be opened"));
}
