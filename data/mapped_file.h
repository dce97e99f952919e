// A file's bytes as memory: read when they are touched, shared by all processes that map them.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "cinta/core/error.h"

namespace cinta::data {

class MappedFile {
 public:
  /// Throws FileError: missing, no regular file, no permission, empty. Who cuts the file while it is mapped ends the
  /// process that reads on; files that are replaced as a whole (AtomicFile) are not cut.
  static std::shared_ptr<const MappedFile> open(const std::string& path, Where where = Where::current());
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace cinta::data
