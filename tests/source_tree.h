// The source tree as the structure tests see it: every file of the house as lines, and what it includes.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace cinta::testing {

struct SourceFile {
  std::vector<std::string> lines;
  std::vector<std::string> own_includes;    ///< files of this tree, relative to its root
  std::vector<std::string> other_includes;  ///< as written: <zlib.h>, "beyond.h"
};

/// All files below the top-level folders of the house, by path relative to the root ("core/tensor.h").
const std::map<std::string, SourceFile>& source_tree();

/// The top-level folder of a path: "core" of "core/tensor.h".
std::string folder_of(const std::string& path);

bool is_cpp(const std::string& path);
bool is_header(const std::string& path);

}  // namespace cinta::testing
