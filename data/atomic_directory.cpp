// Writing a directory under a temporary name and putting it in its place.
#include "cinta/data/atomic_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace cinta::data {

namespace fs = std::filesystem;

AtomicDirectory::AtomicDirectory(const std::string& path, Where where)
    : path_(path), temporary_(parent_of(path) + "/." + name_of_path(path) + ".tmp-" + std::to_string(::getpid())) {
  std::error_code error;
  fs::create_directories(parent_of(path_), error);
  if (error) throw_file_error(parent_of(path_), "cannot be created", error.value(), where);
  if (::mkdir(temporary_.c_str(), 0777) != 0) throw_file_error(temporary_, "cannot be created", errno, where);
}

AtomicDirectory::~AtomicDirectory() {
  file_.reset();
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);  // after commit() this is what stood in the place before, if anything
}

ByteSink& AtomicDirectory::add(const std::string& name, Where where) {
  finish_file();
  file_ = std::make_unique<OutputFile>(temporary_ + "/" + name, 0, where);
  return *file_;
}

void AtomicDirectory::finish_file() {
  if (file_) file_->finish();
  file_.reset();
}

void AtomicDirectory::commit(Where where) {
  finish_file();
  sync_directory(temporary_, where);
  if (!fs::exists(fs::symlink_status(path_))) {
    rename_path(temporary_, path_, where);
  } else if (!exchange_paths(temporary_, path_, where)) {
    const std::string aside = temporary_ + ".old";
    rename_path(path_, aside, where);
    rename_path(temporary_, path_, where);
    rename_path(aside, temporary_, where);
  }
  sync_directory(parent_of(path_), where);
}

}  // namespace cinta::data
