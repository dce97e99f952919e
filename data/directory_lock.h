// Keeping others out of a directory.
#pragma once
#include <chrono>
#include <string>

#include "cinta/core/error.h"

namespace cinta::data {

/// Held while this is alive, and by child processes while they are where `inherited`; the kernel lets go of it when
/// they die, however they do. Leaves no file. A file system without locks keeps nobody out.
class DirectoryLock {
 public:
  /// Locks an existing directory, waiting for up to `patience`. Throws FileError where somebody else holds it.
  explicit DirectoryLock(const std::string& directory, std::chrono::milliseconds patience = {}, bool inherited = false,
                         Where where = Where::current());
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace cinta::data
