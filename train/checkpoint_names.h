// How the directories and files of a checkpoint are called; shared by their writer and their finder.
#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cinta/data/atomic_file.h"

namespace cinta::train {

inline const std::string checkpoint_prefix = "checkpoint-";  ///< checkpoint-500
inline const std::string temporary_mark = ".tmp-";           ///< .checkpoint-500.tmp-<process>: being written
inline const std::string replaced_mark = ".old-";  ///< .checkpoint-500.old-<process>: making room for a new one
inline const std::string manifest_name = "manifest.json";

/// The names in a directory, sorted; none where it does not exist.
inline std::vector<std::string> names_in(const std::string& directory, Where where) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory)
    data::throw_file_error(directory, "cannot be listed", error.value(), where);
  std::ranges::sort(names);
  return names;
}

inline bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

inline std::string hex_of(uint32_t number) {
  std::string out(8, '0');
  for (int i = 7; i >= 0; --i, number >>= 4) out[size_t(i)] = "0123456789abcdef"[number & 15];
  return out;
}

}  // namespace cinta::train
