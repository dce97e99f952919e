// mmap(2), read-only.
#include "cinta/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "cinta/data/atomic_file.h"

namespace cinta::data {

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, Where where) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw_file_error(path, "cannot be opened", errno, where);
  struct stat status = {};
  const bool regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  const auto size = static_cast<size_t>(status.st_size);
  void* const begin = regular ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0) : MAP_FAILED;
  const int error = errno;
  ::close(descriptor);  // the mapping stays
  require<FileError>(regular, "map", where, path, ": is no regular file with something in it");
  if (begin == MAP_FAILED) throw_file_error(path, "cannot be mapped", error, where);
  return std::shared_ptr<const MappedFile>(new MappedFile({static_cast<const std::byte*>(begin), size}));
}

MappedFile::~MappedFile() { ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

}  // namespace cinta::data
