// A run whose only checkpoint is damaged, seen through `cinta`: whatever is wrong with it, going on is refused in one
// line with exit code 2, and nothing is written.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "command_helpers.h"

using namespace cinta::testing;
namespace fs = std::filesystem;

namespace {

/// A perceptron with one hidden unit, its checkpoint after 4 steps.
struct SmallRun {
  SmallRun() {
    REQUIRE(run_cinta(command("4")).code == 0);
    for (const auto& entry : fs::directory_iterator(checkpoint)) names.push_back(entry.path().filename());
    fs::permissions(scratch.path(), fs::perms(0755));
    before = contents(directory);
  }
  Arguments command(const std::string& steps) const {
    Arguments out = mlp("generated", directory, steps) + Arguments{"--report", "none"};
    *std::ranges::find(out, "32") = "1";
    return out;
  }
  Arguments resume() const { return command("8") + Arguments{"--resume"}; }
  /// Damages the run, tries to go on with it, and mends it.
  void refused(const std::function<void()>& damage, const Parts& parts, Limits limits = {}) const {
    damage();
    check_refused(resume(), parts, limits);
    CHECK(!fs::exists(directory + "/checkpoint-8"));
    for (const auto& [name, bytes] : before) {
      fs::remove_all(directory + "/" + name);
      write_bytes(directory + "/" + name, bytes);
    }
  }
  Scratch scratch;
  std::string directory = scratch / "run", checkpoint = directory + "/checkpoint-4";
  std::vector<std::string> names;
  std::vector<std::pair<std::string, std::string>> before;
};

}  // namespace

TEST_CASE("a checkpoint with a file missing, empty, cut, closed, or a directory in its place",
          "[command_damaged_run]") {
  const SmallRun run;
  REQUIRE(run.names.size() >= 5);
  const bool nobody = can_be_nobody();
  if (!nobody) WARN("skipped in part: without root's rights the program cannot be started here");
  for (const std::string& name : run.names) {
    const std::string path = run.checkpoint + "/" + name, whole = read_bytes(path);
    const Parts parts{run.directory, "has no whole checkpoint; --overwrite starts anew: checkpoint-4: ", name};
    run.refused([&] { fs::remove(path); }, parts);
    run.refused([&] { fs::remove(path), fs::create_directory(path); }, parts);
    run.refused([&] { write_bytes(path, ""); }, parts);
    if (nobody)
      run.refused([&] { fs::permissions(path, fs::perms::none); }, parts + Parts{"Permission denied"},
                  {.nobody = root()});
    for (size_t cut = 1; cut < whole.size(); cut += 1 + whole.size() / 12)
      run.refused([&] { write_bytes(path, whole.substr(0, cut)); }, parts);
    run.refused([&] { write_bytes(path, whole.substr(0, whole.size() - 1)); }, parts);
    run.refused([&] { write_bytes(path, whole + "x"); }, parts);
  }
  CHECK(run_cinta(run.resume()).code == 0);
}

TEST_CASE("a manifest that lies", "[command_damaged_run]") {
  const SmallRun run;
  const std::string path = run.checkpoint + "/manifest.json", whole = read_bytes(path);
  const std::string size = std::to_string(fs::file_size(run.checkpoint + "/config.json"));
  const size_t crc32 = whole.find("\"crc32\": \"") + 10;
  struct Case {
    std::string text, part;
  };
  for (const Case& one : std::vector<Case>{
           {replaced(whole, "\"size\": " + size, "\"size\": 1"), "config.json: found " + size + " bytes, expected 1"},
           {whole.substr(0, crc32) + "00000000" + whole.substr(crc32 + 8), ", expected 00000000"},
           {replaced(whole, "\"config.json\"", "\"other.json\""), "other.json: cannot be opened: No such file"},
           {"{\"version\": 1, \"files\": {}}\n", ": manifest.json does not name it"},
           {replaced(whole, "\"version\": 1", "\"version\": 2"), "expected an object of version 1"},
           {replaced(whole, "\"config.json\"", "\"model.safetensors\""), "found the key 'model.safetensors' twice"},
           {replaced(whole, "\"config.json\"", "\"../config.json\""), "../config.json"}})
    run.refused([&] { write_bytes(path, one.text); }, {run.directory, "checkpoint-4: ", one.part});
  CHECK(run_cinta(run.resume()).code == 0);
}

TEST_CASE("metrics that are missing, damaged, closed, or those of another run", "[command_damaged_run]") {
  const SmallRun run;
  const std::string path = run.directory + "/metrics.jsonl", whole = read_bytes(path);
  const size_t line = whole.find('\n') + 1;
  run.refused([&] { fs::remove(path); }, {path});
  run.refused([&] { fs::remove(path), fs::create_directory(path); }, {path});
  run.refused([&] { write_bytes(path, ""); }, {path});
  run.refused([&] { write_bytes(path, whole.substr(0, line) + "{\"step\":\n" + whole.substr(line)); },
              {path, "line 2"});
  run.refused([&] { write_bytes(path, replaced(whole, "\"seed\":0", "\"seed\":1")); }, {"seed 0, begun with 1"});
  if (can_be_nobody())
    run.refused([&] { fs::permissions(path, fs::perms::none); }, {path, "Permission denied"}, {.nobody = root()});
}

TEST_CASE("a model's weights cut at any byte are refused", "[command_damaged_run]") {
  const SmallRun run;
  const std::string path = run.checkpoint + "/model.safetensors", whole = read_bytes(path);
  size_t taken = 0, unnamed = 0;
  for (size_t length = 0; length < whole.size(); ++length) {
    write_bytes(path, whole.substr(0, length));
    const Finished finished = run_cinta({"inspect", path});
    taken += finished.code != 2;
    unnamed += !finished.error.starts_with("cinta: ") || finished.error.find(path) == std::string::npos ||
               std::ranges::count(finished.error, '\n') != 1;
  }
  CHECK(taken == 0);
  CHECK(unnamed == 0);
}
