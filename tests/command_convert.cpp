// `cinta convert`: rounding to nearest even in every case, what it counts, the files it leaves, and what it refuses.
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cinta/data/sharded_safetensors.h"
#include "command_helpers.h"

using namespace cinta;
using namespace cinta::testing;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

json converted(const Arguments& arguments) {
  const Finished finished = run_cinta(Arguments{"convert", "--json"} + arguments);
  INFO(finished.error);
  REQUIRE(finished.code == 0);
  return json::parse(finished.out);
}

template <class T>
std::vector<T> read_as(const std::string& path, size_t index = 0) {
  const data::SafetensorsSet set = data::SafetensorsSet::open(path);
  const data::StoredTensor& tensor = set.tensors().at(index);
  REQUIRE(tensor.entry->dtype == data::StoredDtype(dtype_of<T>()));
  std::vector<T> out(tensor.entry->size_bytes() / sizeof(T));
  tensor.read(out.data());
  return out;
}

/// Every number of T that is not negative, the middle between it and the next, and what lies just beside the middle.
template <class T>
struct Steps {
  std::vector<double> values;
  std::vector<uint16_t> expected;
  explicit Steps(int codes) {
    for (int code = 0; code < codes; ++code) {
      const double here = float(T::from_bits(uint16_t(code))), next = float(T::from_bits(uint16_t(code + 1)));
      // beyond the last number the next one counts as if it were there
      const double above = std::isinf(next) ? here + (here - float(T::from_bits(uint16_t(code - 1)))) : next;
      const double middle = here + (above - here) / 2;
      add(here, code);
      add(std::nextafter(middle, 0), code);
      add(middle, code + code % 2);
      add(std::nextafter(middle, inf), code + 1);
    }
  }
  void add(double value, int code) {
    values.push_back(value), expected.push_back(uint16_t(code));
    values.push_back(-value), expected.push_back(uint16_t(code | 0x8000));
  }
};

template <class T>
void check_rounding(const char* dtype, int codes) {
  const Scratch scratch;
  const Steps<T> steps(codes);
  const std::string from = scratch / "from.safetensors", to = scratch / "to.safetensors";
  data::save_safetensors(from, {{"x", Dtype::f64, {int64_t(steps.values.size())}, steps.values.data()}});
  const json report = converted({from, to, "--dtype", dtype});
  const std::vector<T> found = read_as<T>(to);
  int64_t wrong = 0, infinite = 0, vanished = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    wrong += found[i].bits != steps.expected[i];
    infinite += std::isinf(float(found[i]));
    vanished += steps.values[i] != 0 && float(found[i]) == 0;
  }
  CHECK(wrong == 0);
  CHECK(infinite == 4);  // the middle above the last number, what follows it, and their negatives
  CHECK(report["counts"]["too_large"] == 4);
  CHECK(vanished == 4);
  CHECK(report["counts"]["too_small"] == 4);
}

/// A directory as a training leaves it, with three tensors of 40 bytes altogether.
struct Model {
  Scratch scratch;
  const std::string path = scratch / "model";
  Model() {
    const float numbers[] = {1, 2, 3, 70000, 1e-30f, 0};
    const int64_t ids[] = {5, 6};
    fs::create_directory(path);
    data::save_safetensors(
        path + "/model.safetensors",
        {{"a", Dtype::f32, {2}, numbers}, {"b", Dtype::f32, {4}, numbers + 2}, {"ids", Dtype::i64, {2}, ids}},
        {{"format", "pt"}, {"note", "kept"}});
    write_bytes(path + "/config.json", "{\"vocab_size\": 3,  \"torch_dtype\": \"float32\", \"a\": 1e-12}");
    write_bytes(path + "/vocab.txt", "[UNK]\nx\n");
    write_bytes(path + "/metrics.jsonl", "{}\n");
  }
};

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("convert rounds each number once, to the nearest, ties to even", "[command]") {
  SECTION("fp16") { check_rounding<f16>("fp16", 0x7c00); }
  SECTION("bf16") { check_rounding<bf16>("bf16", 0x7f80); }
}

TEST_CASE("convert counts NaN, infinities and what overflows, and keeps what is no floating-point number",
          "[command]") {
  const Scratch scratch;
  const float numbers[] = {NAN, INFINITY, -INFINITY, 65519, 65520, -1e6f, 1e-8f, 1};
  const bool truths[] = {true, false};
  const std::string from = scratch / "from.safetensors", to = scratch / "to.safetensors";
  data::save_safetensors(
      from,
      {{"x", Dtype::f32, {8}, numbers}, {"y", Dtype::f32, {1}, numbers + 7}, {"mask", Dtype::boolean, {2}, truths}});
  const json report = converted({from, to, "--dtype", "fp16"});
  CHECK(report["counts"] == json::parse(R"({"numbers": 11, "nan": 1, "infinite": 2, "too_large": 2, "too_small": 1})"));
  CHECK(report["converted"] == 2);
  REQUIRE(report["notable"].size() == 1);
  CHECK(report["notable"]["x"]["too_large"] == 2);
  CHECK_THAT(read_bytes(to), Catch::EndsWith(std::string("\1\0", 2)));  // the mask, in the end as small types are
  const std::vector<f16> x = read_as<f16>(to);
  CHECK(std::isnan(float(x[0])));
  CHECK(float(x[3]) == 65504);
  CHECK(float(x[4]) == inf);
  const Finished told = run_cinta({"convert", from, scratch / "again.safetensors", "--dtype", "fp16"});
  CHECK_THAT(told.out, Contains("x: 1 NaN, 2 infinite, 2 too large\n") &&
                           Contains("1 NaN, 2 infinite, 2 too large (now infinite), 1 too small (now 0)\n"));
  converted({from, scratch / "same.safetensors"});
  CHECK(read_bytes(scratch / "same.safetensors") == read_bytes(from));
}

TEST_CASE("convert carries what no kernel computes with, and inspect lists it", "[command]") {
  const Scratch scratch;
  const float weights[] = {1, 70000};
  const int16_t shorts[] = {-3, 5};
  const uint16_t words[] = {0xffff, 1};
  const uint32_t longer[] = {0xffffffff, 1, 2};
  const uint64_t longest[] = {1, uint64_t{1} << 63};
  const std::string from = scratch / "from", to = scratch / "to";
  fs::create_directory(from);
  data::save_safetensors(from + "/model.safetensors", {{"w", Dtype::f32, {2}, weights},
                                                       {"i16", data::CarriedDtype::i16, {2}, shorts},
                                                       {"u16", data::CarriedDtype::u16, {1, 2}, words},
                                                       {"u32", data::CarriedDtype::u32, {3}, longer},
                                                       {"u64", data::CarriedDtype::u64, {2}, longest}});
  const json report = converted({from, to, "--dtype", "bf16", "--max_shard_size", "16B"});
  CHECK(report["converted"] == 1);
  CHECK(report["bytes"] == 2 * 2 + 2 * 2 + 2 * 2 + 3 * 4 + 2 * 8);
  CHECK(report["counts"]["numbers"] == 11);
  const Finished listed = run_cinta({"inspect", to, "--json"});
  REQUIRE(listed.code == 0);
  const json tensors = json::parse(listed.out)["tensors"];
  REQUIRE(tensors.size() == 5);
  const auto row = [&](size_t index, const char* dtype, double least, double greatest) {
    CHECK(tensors[index]["dtype"] == dtype);
    CHECK(tensors[index]["min"] == least);
    CHECK(tensors[index]["max"] == greatest);
  };
  row(0, "i16", -3, 5);
  row(1, "u16", 1, 65535);
  row(2, "u32", 1, 4294967295);
  row(3, "u64", 1, 0x1p63);
  converted({to, scratch / "back", "--to", "single"});
  const Finished difference = run_cinta({"inspect", from, "--diff", scratch / "back", "--json"});
  CHECK(json::parse(difference.out)["equal"] == 4);
}

TEST_CASE("convert carries a model's directory along, in shards and back", "[command]") {
  const Model model;
  const std::string shards = model.scratch / "new/shards", back = model.scratch / "back";
  const json report = converted({model.path, shards + "/", "--max_shard_size", "16B"});
  CHECK(report["bytes"] == 40);
  CHECK(names_in(shards) == Names{"config.json", "model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                  "model-00003-of-00003.safetensors", "model.safetensors.index.json", "vocab.txt"});
  CHECK(read_bytes(shards + "/config.json") == read_bytes(model.path + "/config.json"));
  const json index = json::parse(read_bytes(shards + "/model.safetensors.index.json"));
  CHECK(index["metadata"]["total_size"] == 40);
  CHECK(index["weight_map"].size() == 3);
  converted({shards, back, "--to", "single"});
  CHECK(names_in(back) == Names{"config.json", "model.safetensors", "vocab.txt"});
  CHECK(read_bytes(back + "/model.safetensors") == read_bytes(model.path + "/model.safetensors"));

  converted({shards, back, "--dtype", "bf16", "--overwrite"});
  CHECK(read_bytes(back + "/config.json") ==
        "{\n  \"vocab_size\": 3,\n  \"torch_dtype\": \"bfloat16\",\n  \"a\": 1e-12\n}\n");
  CHECK(read_as<bf16>(back, 1).size() == 2);
  CHECK(names_in(model.scratch.path()) == Names{"back", "model", "new"});
  CHECK(names_in(model.scratch / "new") == Names{"shards"});
}

TEST_CASE("a model in shards is evaluated as the same model in one file is", "[command]") {
  const Scratch scratch;
  const std::string trained = scratch / "trained", shards = scratch / "shards";
  REQUIRE(run_cinta({"train", "mlp", "--data", "generated", "--max_steps", "5", "--hidden", "8", "--quiet",
                     "--output_dir", trained})
              .code == 0);
  REQUIRE(converted({trained, shards, "--max_shard_size", "400"})["files"].size() > 1);
  const Finished one = run_cinta({"eval", "--data", "generated", "--model", trained}),
                 many = run_cinta({"eval", "--data", "generated", "--model", shards});
  CHECK(many.code == 0);
  CHECK(one.out.starts_with("eval_loss "));
  CHECK(many.out == one.out);
}

TEST_CASE("convert refuses before it writes, and leaves what was there", "[command]") {
  const Model model;
  const std::string one = model.path + "/model.safetensors", file = model.scratch / "file";
  write_bytes(file, "mine");
  const std::string damaged = model.scratch / "damaged";
  fs::create_directory(damaged);
  const std::string bytes = read_bytes(one);
  write_bytes(damaged + "/model.safetensors", bytes.substr(0, bytes.size() - 1));
  const auto before = names_in(model.scratch.path());
  for (const auto& [arguments, part] : std::vector<std::pair<Arguments, std::string>>{
           {{one, file}, "file: exists; --overwrite replaces it"},
           {{model.path, file, "--overwrite"}, "file: is no directory"},
           {{one, model.path, "--overwrite"}, "model: is a directory, and one file is to be written; --to sharded"},
           {{one, model.path}, "model: is a directory, and one file is to be written"},
           {{damaged, model.path}, "model: exists; --overwrite"},
           {{damaged, model.path, "--overwrite"}, "model: holds metrics.jsonl, which is no file of a model"},
           {{damaged, model.scratch / "new"}, "truncated"},
           {{model.scratch / "none", model.scratch / "new"}, "none: cannot be opened"},
           {{one, model.scratch / "new", "--dtype", "int8"}, "int8"},
           {{one, model.scratch / "new", "--max_shard_size", "3 pages"}, "a number of bytes such as 100MB or 2GiB"},
           {{one, model.scratch / "new", "--max_shard_size", "0"}, "a number of bytes such as 100MB"},
           {{one, model.scratch / "new", "--max_shard_size", "99999999999GB"}, "a number of bytes such as 100MB"},
           {{one, model.scratch / "new", "--max_shard_size", "1MB", "--to", "single"}, "goes with --to sharded"}}) {
    INFO(part);
    const Finished finished = run_cinta(Arguments{"convert"} + arguments);
    CHECK(finished.code == 2);
    CHECK_THAT(finished.error, Contains(part));
    CHECK(names_in(model.scratch.path()) == before);
  }
  CHECK(read_bytes(file) == "mine");
}

TEST_CASE("convert replaces no directory that holds more than the source", "[command]") {
  const Scratch scratch;
  const std::string from = scratch / "from", to = scratch / "to", file = from + "/model.safetensors";
  fs::create_directory(from);
  const float one = 1;
  data::save_safetensors(file, {{"x", Dtype::f32, {1}, &one}});
  write_bytes(from + "/config.json", "{}");
  REQUIRE(run_cinta({"convert", from, to}).code == 0);
  const auto refused = [&](const std::string& source, const std::string& part) {
    const auto before = names_in(to);
    INFO(part);
    const Finished finished = run_cinta({"convert", source, to, "--to", "sharded", "--overwrite"});
    CHECK(finished.code == 2);
    CHECK_THAT(finished.error, Contains(part));
    CHECK(names_in(to) == before);
  };
  refused(file, "to: holds config.json, which a source that is no directory does not have");
  refused(to + "/model.safetensors", "to: holds config.json, which");
  write_bytes(to + "/vocab.txt", "[UNK]\n");
  refused(from, "to: holds vocab.txt, which " + from + " does not have");
  fs::remove(to + "/vocab.txt");
  for (const std::string mine : {"model_ema.safetensors", "model2-00001-of-00002.safetensors",
                                 "model-00001-of-00002.safetensors.bak", "model-1-o2f-3.safetensors"}) {
    write_bytes(to + "/" + mine, "mine");
    refused(from, "to: holds " + mine + ", which is no file of a model");
    fs::remove(to + "/" + mine);
  }
  fs::create_directory(to + "/model-00001-of-00001.safetensors");
  refused(from, "to: holds model-00001-of-00001.safetensors, which is no file of a model");
  fs::remove(to + "/model-00001-of-00001.safetensors");
  for (int twice = 0; twice < 2; ++twice)
    CHECK(run_cinta({"convert", from, to, "--to", "sharded", "--overwrite"}).code == 0);
  write_bytes(from + "/config.json", "{");
  refused(from, "config.json: is no JSON object");
}

TEST_CASE("convert that cannot write all leaves nothing", "[command]") {
  const Scratch scratch;
  const std::vector<float> numbers(20000, 1);
  const std::string from = scratch / "from.safetensors";
  data::save_safetensors(from, {{"x", Dtype::f32, {20000}, numbers.data()}});
  for (const Arguments& more : {Arguments{}, Arguments{"--to", "sharded"}}) {
    const Finished finished = run_cinta(Arguments{"convert", from, scratch / "to"} + more, {.file_bytes = 30000});
    CHECK(finished.code == 2);
    CHECK_THAT(finished.error, Contains("File too large"));
    CHECK(names_in(scratch.path()) == Names{"from.safetensors"});
  }
}
