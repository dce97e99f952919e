// A small checkpoint cut at every byte, and one whose manifest lies: it is never taken, the one before it is.
#include <catch2/catch.hpp>

#include "cinta/train/checkpoint_directory.h"
#include "cinta/train/classifier.h"
#include "command_helpers.h"
#include "data_helpers.h"
#include "train_helpers.h"

using namespace cinta;
using namespace cinta::testing;
namespace fs = std::filesystem;

namespace {

/// A perceptron with a hidden layer of two, its checkpoints after 4 and 8 steps.
struct SmallRun {
  SmallRun() {
    const data::Standardizer identity{std::vector<double>(64, 0), std::vector<double>(64, 1)};
    train::ClassifyTask task(small_digits(), identity, {2}, 16, 9);
    train::RunOptions options = small_run(directory);
    options.max_steps = 8;
    options.save_steps = 4;
    train::run(task, options, {{"model", std::string("small")}});
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(newest)) names.push_back(entry.path().filename());
    return names;
  }
  Scratch scratch;
  std::string directory = scratch / "run", newest = directory + "/checkpoint-8";
};

}  // namespace

TEST_CASE("a checkpoint cut at any byte of any file is passed over and named", "[checkpoint_cut]") {
  const SmallRun run;
  size_t cuts = 0;
  REQUIRE(train::newest_checkpoint(run.directory).newest->step == 8);
  REQUIRE(run.files().size() >= 5);
  for (const std::string& name : run.files()) {
    const std::string path = run.newest + "/" + name, whole = read_bytes(path);
    size_t taken = 0, unnamed = 0;
    for (size_t length = whole.size(); length-- > 0; ++cuts) {
      fs::resize_file(path, length);
      const std::string fault = train::checkpoint_fault(run.newest);
      taken += fault.empty();
      unnamed += !fault.starts_with(name);
      if (length % 101 != 0) continue;
      const train::CheckpointSearch search = train::newest_checkpoint(run.directory);
      CHECK((search.newest && search.newest->step == 4));
      CHECK(search.skipped == std::vector<std::string>{"checkpoint-8: " + fault});
    }
    INFO(name);
    CHECK(taken == 0);
    CHECK(unnamed == 0);
    write_bytes(path, whole);
  }
  CHECK(cuts > 4000);
  CHECK(train::newest_checkpoint(run.directory).newest->step == 8);
}

TEST_CASE("a model's file cut at any byte is refused", "[checkpoint_cut]") {
  const SmallRun run;
  for (const std::string name : {"model.safetensors", "config.json"}) {
    const std::string path = run.newest + "/" + name, whole = read_bytes(path);
    size_t taken = 0, unnamed = 0;
    const size_t end = whole.size() - (name == "config.json");  // its last byte ends the line
    for (size_t length = 0; length < end; ++length) {
      write_bytes(path, whole.substr(0, length));
      const std::string error = error_of<FileError>([&] { train::load_classifier(run.newest); });
      taken += error == "no error";
      unnamed += error.find(name) == error.npos;
    }
    INFO(name);
    CHECK(taken == 0);
    CHECK(unnamed == 0);
    write_bytes(path, whole);
  }
  CHECK(train::load_classifier(run.newest).first.sizes == std::vector<int64_t>{64, 2, 10});
}

TEST_CASE("a manifest that lies is found out", "[checkpoint_cut]") {
  const SmallRun run;
  const std::string path = run.newest + "/manifest.json", whole = read_bytes(path);
  const std::string size = std::to_string(fs::file_size(run.newest + "/config.json"));
  auto lies = [&](const std::string& text, const std::string& fault) {
    write_bytes(path, text);
    const train::CheckpointSearch search = train::newest_checkpoint(run.directory);
    CHECK((search.newest && search.newest->step == 4));
    REQUIRE(search.skipped.size() == 1);
    CHECK_THAT(search.skipped[0], Catch::StartsWith("checkpoint-8: ") && Catch::Contains(fault));
  };
  lies(replaced(whole, "\"size\": " + size, "\"size\": 1"), "config.json: found " + size + " bytes, expected 1");
  const size_t at = whole.find("\"crc32\": \"") + 10;
  lies(whole.substr(0, at) + "00000000" + whole.substr(at + 8), ", expected 00000000");
  lies(replaced(whole, "\"config.json\"", "\"other.json\""), "other.json: cannot be opened: No such file");
  lies("{\"version\": 1, \"files\": {}}\n", ": manifest.json does not name it");
  lies(replaced(whole, "\"version\": 1", "\"version\": 2"), "expected an object of version 1");
  lies(replaced(whole, "\"config.json\"", "\"model.safetensors\""), "found the key 'model.safetensors' twice");
  lies(whole + "x", "manifest.json is damaged");
  write_bytes(path, whole);
  CHECK(train::newest_checkpoint(run.directory).newest->step == 8);
}

TEST_CASE("cinta goes on from the checkpoint before a damaged one", "[checkpoint_cut]") {
  const Scratch scratch;
  const std::string whole = scratch / "whole", cut = scratch / "cut";
  const Arguments more{"--save_steps", "4"};
  for (const std::string& directory : {whole, cut})
    REQUIRE(run_cinta(mlp("generated", directory, "8") + more).code == 0);
  const std::string damaged = cut + "/checkpoint-8/model.safetensors";
  fs::resize_file(damaged, fs::file_size(damaged) - 1);
  fs::create_directory(cut + "/.checkpoint-12.tmp-1");  // of an interrupted run: no news, unlike damage
  const Finished finished = run_cinta(mlp("generated", cut, "8") + more + Arguments{"--resume"});
  INFO(finished.error);
  CHECK(finished.code == 0);
  CHECK(finished.error.find("skipped checkpoint-8: model.safetensors: found ") == 0);
  for (const char* name : {"model.safetensors", "metrics.jsonl", "checkpoint-8/optimizer.safetensors"})
    CHECK(read_bytes(cut + "/" + name) == read_bytes(whole + "/" + name));

  for (const char* checkpoint : {"/checkpoint-4", "/checkpoint-8"})
    fs::resize_file(cut + checkpoint + "/manifest.json", 10);
  check_refused(mlp("generated", cut, "8") + Arguments{"--resume"},
                {cut, "has no whole checkpoint", "--overwrite starts anew", "checkpoint-8: manifest.json is damaged"});
}
