// Writing a directory under a temporary name and putting it in its place.
#include "cinta/data/atomic_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace cinta::data {

namespace fs = std::filesystem;

namespace {

/// The hidden name beside `path` with `mark`, up to the process.
std::string hidden_name(const std::string& path, const std::string& mark) { return "." + name_of_path(path) + mark; }

void remove_leftovers(const std::string& path, const std::string& mark, Where where) {
  const std::string directory = parent_of(path), prefix = hidden_name(path, mark);
  for (const std::string& name : names_in(directory, where)) {
    std::error_code error;
    if (name.starts_with(prefix)) fs::remove_all(directory + "/" + name, error);
    if (error)
      throw_file_error(directory + "/" + name, "left by an earlier run, cannot be removed", error.value(), where);
  }
}

}  // namespace

AtomicDirectory::AtomicDirectory(const std::string& path, Where where)
    : path_(path), temporary_(parent_of(path) + "/" + hidden_name(path, temporary_mark) + std::to_string(::getpid())) {
  std::error_code error;
  fs::create_directories(parent_of(path_), error);
  if (error) throw_file_error(parent_of(path_), "cannot be created", error.value(), where);
  remove_leftovers(path_, temporary_mark, where);
  if (::mkdir(temporary_.c_str(), 0777) != 0) throw_file_error(temporary_, "cannot be created", errno, where);
}

AtomicDirectory::~AtomicDirectory() {
  file_.reset();
  std::error_code ignored;
  if (!in_place_) fs::remove_all(temporary_, ignored);
}

ByteSink& AtomicDirectory::add(const std::string& name, Where where) {
  require(is_plain_name(name), "directory", where, "a name without a directory, given '", name, "'");
  finish_file();
  require(written_.emplace(name, Written{}).second, "directory", where, "the file '", name, "' is added once");
  file_ = std::make_shared<OutputFile>(temporary_ + "/" + name, 0, where);
  return *file_;
}

void AtomicDirectory::finish_file() {
  if (!file_) return;
  file_->finish();
  written_[name_of_path(file_->path())] = {file_->size(), file_->crc32()};
  file_.reset();
}

const std::map<std::string, AtomicDirectory::Written>& AtomicDirectory::written() {
  finish_file();
  return written_;
}

void AtomicDirectory::commit(Where where) {
  finish_file();
  sync_directory(temporary_, where);
  if (!fs::exists(fs::symlink_status(path_))) {
    rename_path(temporary_, path_, where);
  } else if (!exchange_paths(temporary_, path_, where)) {
    rename_path(path_, parent_of(path_) + "/" + hidden_name(path_, replaced_mark) + std::to_string(::getpid()), where);
    rename_path(temporary_, path_, where);
  }
  in_place_ = true;
  sync_directory(parent_of(path_), where);  // what was replaced goes only once the new one's name is on the disk
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
  remove_leftovers(path_, replaced_mark, where);
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

std::vector<std::string> names_in(const std::string& directory, Where where) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory)
    throw_file_error(directory, "cannot be listed", error.value(), where);
  std::ranges::sort(names);
  return names;
}

}  // namespace cinta::data
