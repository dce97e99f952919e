// Reads the source tree once for the structure tests, and checks that it read something.
#include "source_tree.h"

#include <catch2/catch.hpp>
#include <fstream>

namespace cinta::testing {
namespace {
namespace fs = std::filesystem;

constexpr const char* folders[] = {"core",   "backends", "autograd", "ops",   "optim",      "distributed",
                                   "models", "data",     "train",    "tools", "benchmarks", "examples",
                                   "tests",  "scripts",  "cmake",    "docs",  ".ci",        "include"};

/// "cinta/core/tensor.h" is core/tensor.h; cinta/cinta.h stands in include/; the rest is beside the file that includes
/// it.
void add_include(SourceFile& file, const fs::path& path, const std::string& line) {
  const auto open = line.find_first_of("\"<"), close = line.find_last_of("\">");
  if (open == line.npos || close <= open) return;
  const std::string name = line.substr(open + 1, close - open - 1);
  const fs::path root = CINTA_SOURCE_DIR;
  const fs::path beside = (path.parent_path() / name).lexically_normal();
  if (name.starts_with("cinta/") && name.find('/', 6) == name.npos) {
    file.own_includes.push_back("include/" + name);
  } else if (name.starts_with("cinta/")) {
    file.own_includes.push_back(name.substr(6));
  } else if (line[open] == '"' && fs::exists(root / beside)) {
    file.own_includes.push_back(beside.generic_string());
  } else if (line[open] == '"' && fs::exists(root / name)) {
    file.own_includes.push_back(name);
  } else {
    file.other_includes.push_back(line.substr(open, close - open + 1));
  }
}

SourceFile read(const fs::path& path) {
  SourceFile file;
  std::ifstream stream(fs::path(CINTA_SOURCE_DIR) / path);
  for (std::string line; std::getline(stream, line);) {
    if (is_cpp(path.generic_string()) && line.starts_with("#include")) add_include(file, path, line);
    file.lines.push_back(std::move(line));
  }
  return file;
}

bool is_text(const fs::path& path) {
  for (const char* extension : {".h", ".cpp", ".cu", ".cmake", ".in", ".py", ".md", ".txt", ".json", ".svg", ""}) {
    if (path.extension() == extension) return true;
  }
  return false;
}
}  // namespace

const std::map<std::string, SourceFile>& source_tree() {
  static const auto tree = [] {
    std::map<std::string, SourceFile> files;
    const fs::path root = CINTA_SOURCE_DIR;
    const auto add = [&](const fs::directory_entry& entry) {
      if (!entry.is_regular_file() || !is_text(entry.path())) return;
      const fs::path path = entry.path().lexically_relative(root);
      files.emplace(path.generic_string(), read(path));
    };
    // The links of include/ are not followed, so that every file is seen once, under its own name.
    for (const auto& entry : fs::directory_iterator(root)) add(entry);
    for (const char* folder : folders) {
      if (!fs::exists(root / folder)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(root / folder)) add(entry);
    }
    return files;
  }();
  return tree;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.find('/')); }

bool is_cpp(const std::string& path) { return is_header(path) || path.ends_with(".cpp") || path.ends_with(".cu"); }
bool is_header(const std::string& path) { return path.ends_with(".h"); }

TEST_CASE("the source tree is read", "[structure]") {
  REQUIRE(source_tree().contains("core/tensor.h"));
  REQUIRE(source_tree().contains("CMakeLists.txt"));
  CHECK_FALSE(source_tree().contains("include/cinta/core/tensor.h"));
  CHECK(source_tree().at("core/tensor.h").own_includes.size() > 0);
}

}  // namespace cinta::testing
