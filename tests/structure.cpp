// Laws of the source tree: includes point down and run in no circle, files are short and say what they are, public
// headers stay light and are all reached from <cinta/cinta.h>, nothing points at the machine it was written on.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "source_tree.h"

using namespace cinta::testing;

namespace {

const std::map<std::string, int> floors = {{"core", 0},        {"backends", 1},    {"autograd", 2}, {"ops", 3},
                                           {"optim", 4},       {"distributed", 5}, {"data", 6},     {"models", 7},
                                           {"train", 8},       {"include", 9},     {"tools", 10},   {"tests", 10},
                                           {"benchmarks", 10}, {"examples", 10}};

/// The backends that implement the rows; what is in them is seen by themselves and their tests alone.
std::string implementation_of(const std::string& path) {
  if (!path.starts_with("backends/")) return "";
  const auto slash = path.find('/', 9);
  const std::string name = slash == path.npos ? "" : path.substr(9, slash - 9);
  return name == "kernels" ? "" : name;
}

/// Every file of this tree that `path` pulls in, itself among them.
void reach(const std::string& path, std::set<std::string>& reached) {
  const auto& tree = source_tree();
  if (!tree.contains(path) || !reached.insert(path).second) return;
  for (const auto& include : tree.at(path).own_includes) reach(include, reached);
}

/// Depth-first walk over includes; a file met again while it is still open closes a circle.
void find_cycle(const std::string& path, std::vector<std::string>& open, std::set<std::string>& done) {
  if (done.contains(path) || !source_tree().contains(path)) return;
  if (const auto start = std::find(open.begin(), open.end(), path); start != open.end()) {
    std::string circle;
    for (auto file = start; file != open.end(); ++file) circle += *file + " -> ";
    FAIL_CHECK("includes run in a circle: " << circle << path);
    return;
  }
  open.push_back(path);
  for (const auto& include : source_tree().at(path).own_includes) find_cycle(include, open, done);
  open.pop_back();
  done.insert(path);
}

/// The lines of each block of C++ that a page shows.
std::vector<std::vector<std::string>> cpp_blocks(const SourceFile& page) {
  std::vector<std::vector<std::string>> blocks;
  bool inside = false;
  for (const auto& line : page.lines) {
    if (line.starts_with("```")) {
      inside = line == "```cpp";
      if (inside) blocks.emplace_back();
    } else if (inside) {
      blocks.back().push_back(line);
    }
  }
  return blocks;
}

}  // namespace

TEST_CASE("an include points down the floors, and to a file that exists", "[structure]") {
  for (const auto& [path, file] : source_tree()) {
    if (!is_cpp(path) || path.starts_with("tests/package/")) continue;
    const std::string folder = folder_of(path);
    INFO(path);
    REQUIRE(floors.contains(folder));
    for (const auto& include : file.own_includes) {
      INFO("includes " << include);
      CHECK(source_tree().contains(include));
      const std::string other = folder_of(include);
      REQUIRE(floors.contains(other));
      if (other != folder) CHECK(floors.at(other) < floors.at(folder));
      if (const auto implementation = implementation_of(include); !implementation.empty()) {
        CHECK((folder == "tests" || implementation_of(path) == implementation));
      }
    }
    for (const auto& include : file.other_includes) {
      INFO("includes " << include);
      CHECK(include.starts_with("<"));
    }
  }
}

TEST_CASE("includes run in no circle", "[structure]") {
  std::set<std::string> done;
  for (const auto& [path, file] : source_tree()) {
    std::vector<std::string> open;
    find_cycle(path, open, done);
  }
}

TEST_CASE("files are short", "[structure]") {
  std::vector<size_t> lengths;
  for (const auto& [path, file] : source_tree()) {
    if (!is_cpp(path)) continue;
    INFO(path << " has " << file.lines.size() << " lines");
    CHECK(file.lines.size() <= 400);
    lengths.push_back(file.lines.size());
  }
  std::sort(lengths.begin(), lengths.end());
  const size_t median = lengths[lengths.size() / 2];
  WARN(lengths.size() << " C++ files, " << median << " lines in the median, " << lengths.back() << " at most");
  CHECK(median <= 120);
}

TEST_CASE("a file opens by saying what it is", "[structure]") {
  for (const auto& [path, file] : source_tree()) {
    if (!is_cpp(path)) continue;
    INFO(path);
    REQUIRE_FALSE(file.lines.empty());
    CHECK(file.lines[0].starts_with("// "));
    if (is_header(path)) CHECK(std::count(file.lines.begin(), file.lines.end(), "#pragma once") <= 1);
  }
}

TEST_CASE("<cinta/cinta.h> reaches every public header, and pulls in the standard library alone", "[structure]") {
  // A program that trains sees every header but these: the details of a floor, and what only new ops and runs need.
  const std::set<std::string> left_out = {"data/atomic_directory.h",
                                          "core/large_blocks.h",
                                          "data/directory_lock.h",
                                          "data/text_columns.h",
                                          "autograd/copy.h",
                                          "autograd/function.h",
                                          "autograd/joined_observer.h",
                                          "autograd/saved.h",
                                          "autograd/sink.h",
                                          "core/format_facts.h",
                                          "core/random.h",
                                          "core/small_blocks.h",
                                          "core/allocator.h",
                                          "data/corpus_cache.h",
                                          "data/file.h",
                                          "data/mapped_file.h",
                                          "data/safetensors_index.h",
                                          "data/strict_json.h",
                                          "data/tokenizer_json.h",
                                          "data/permutation.h",
                                          "data/unicode.h",
                                          "data/safetensors_header.h",
                                          "models/bert/names.h",
                                          "ops/attention_core.h",
                                          "ops/check.h",
                                          "ops/normalize_check.h",
                                          "ops/rows.h",
                                          "ops/narrow_linear.h",
                                          "ops/tf32.h",
                                          "ops/row_gradient.h",
                                          "ops/unary.h",
                                          "optim/composed_update.h",
                                          "train/bad_loss.h",
                                          "train/exponents.h",
                                          "train/step_cost.h",
                                          "train/tape_graph.h",
                                          "train/tensorboard.h",
                                          "train/trace.h",
                                          "train/checkpoint_names.h",
                                          "train/model_files.h",
                                          "train/plot.h",
                                          "train/plot_bars.h",
                                          "train/plot_markup.h",
                                          "train/timing.h",
                                          "train/live_tensors.h",
                                          "train/machine.h",
                                          "train/progress.h",
                                          "train/readable.h",
                                          "train/report_sections.h",
                                          "train/step_profile.h",
                                          "train/tape_recorder.h",
                                          "train/run_files.h",
                                          "train/checkpoint_directory.h"};
  const std::set<std::string> public_folders = {"core",        "autograd", "ops",  "optim",
                                                "distributed", "models",   "data", "train"};
  std::set<std::string> reached;
  reach("include/cinta/cinta.h", reached);
  for (const auto& [path, file] : source_tree()) {
    if (!is_header(path) || !public_folders.contains(folder_of(path))) continue;
    INFO(path);
    CHECK(reached.contains(path) == !left_out.contains(path));
  }
  for (const auto& path : reached) {
    CHECK(implementation_of(path).empty());
    for (const std::string& line : source_tree().at(path).lines) {
      INFO(path << ": " << line);
      CHECK(line.find("std::unique_ptr<") == line.npos);
    }
    for (const auto& include : source_tree().at(path).other_includes) {
      INFO(path << " includes " << include);
      CHECK(include.find_first_of("/.") == include.npos);  // <vector>, not <fmt/format.h> or <zlib.h>
      // <chrono> and its like take long to compile; so does each std::unique_ptr, whose place std::shared_ptr takes.
      for (const char* heavy : {"<chrono>", "<format>", "<iostream>", "<regex>", "<sstream>"}) CHECK(include != heavy);
    }
  }
}

TEST_CASE("no file points at the machine it was written on", "[structure]") {
  const std::string forbidden[] = {std::string("/work") + "/", std::string("/home") + "/", std::string("/root") + "/"};
  for (const auto& [path, file] : source_tree()) {
    if (path == ".git") continue;  // a file in a worktree: it names the repository
    for (size_t line = 0; line < file.lines.size(); ++line) {
      for (const auto& word : forbidden) {
        INFO(path << ":" << line + 1 << " " << word);
        CHECK(file.lines[line].find(word) == std::string::npos);
      }
    }
  }
}

TEST_CASE("programs shown in README.md and CONTRIBUTING.md are compiled, word for word", "[structure]") {
  // A block may leave out what stands before and after it in its file; from its first line to its last it is the same.
  const std::pair<const char*, const char*> pages[] = {{"README.md", "examples"}, {"CONTRIBUTING.md", "tests"}};
  const auto& tree = source_tree();
  for (const auto& [page, folder] : pages) {
    INFO(page);
    REQUIRE(tree.contains(page));
    const auto blocks = cpp_blocks(tree.at(page));
    CHECK_FALSE(blocks.empty());
    for (const auto& block : blocks) {
      REQUIRE_FALSE(block.empty());
      const bool found = std::any_of(tree.begin(), tree.end(), [&](const auto& entry) {
        const auto& lines = entry.second.lines;
        return folder_of(entry.first) == folder && is_cpp(entry.first) &&
               std::search(lines.begin(), lines.end(), block.begin(), block.end()) != lines.end();
      });
      INFO("not in " << folder << "/: the block that begins with " << block.front());
      CHECK(found);
    }
  }
}
