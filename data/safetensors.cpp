// Opening a .safetensors file and copying tensors out of it.
#include "cinta/data/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cinta/core/tensor.h"
#include "cinta/data/safetensors_header.h"

namespace cinta::data {
namespace {

/// Reads exactly `count` bytes at `offset`.
void read_at(int descriptor, void* destination, uint64_t count, uint64_t offset, const FileComplaint& complain) {
  auto* out = static_cast<char*>(destination);
  while (count > 0) {
    const ssize_t got = ::pread(descriptor, out, std::min<uint64_t>(count, 1 << 30), off_t(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) complain("byte ", offset, ": reading failed: ", std::strerror(errno));
    if (got == 0) complain("byte ", offset, ": found the end of the file, expected ", count, " bytes more");
    out += got;
    offset += uint64_t(got);
    count -= uint64_t(got);
  }
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::string& path, Where where) {
  const FileComplaint complain{path, where};
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) complain("cannot be opened: ", std::strerror(errno));
  SafetensorsFile file(path, descriptor);
  struct stat status;
  if (::fstat(descriptor, &status) != 0) complain("cannot be examined: ", std::strerror(errno));
  if (!S_ISREG(status.st_mode)) complain(S_ISDIR(status.st_mode) ? "is a directory" : "is no regular file");
  const auto file_size = uint64_t(status.st_size);
  unsigned char prefix[8];
  if (file_size < sizeof prefix) complain("found ", file_size, " bytes, expected at least 8, the length of the header");
  read_at(descriptor, prefix, sizeof prefix, 0, complain);
  const uint64_t length = safetensors_header_length(prefix, file_size, path, where);
  std::string json(length, '\0');
  read_at(descriptor, json.data(), length, sizeof prefix, complain);
  file.data_begin_ = sizeof prefix + length;
  auto header = parse_safetensors_header(json, file_size - file.data_begin_, path, where);
  file.entries_ = std::move(header.entries);
  file.metadata_ = std::move(header.metadata);
  return file;
}

SafetensorsFile::~SafetensorsFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      data_begin_(other.data_begin_),
      entries_(std::move(other.entries_)),
      metadata_(std::move(other.metadata_)) {}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &SafetensorsEntry::name);
  return found == entries_.end() ? nullptr : &*found;
}

void SafetensorsFile::read(const SafetensorsEntry& entry, void* destination, Where where) const {
  const FileComplaint complain{path_, where};
  read_at(descriptor_, destination, entry.size_bytes(), data_begin_ + entry.begin, complain);
  if (entry.dtype != Dtype::boolean) return;
  const auto* bytes = static_cast<const unsigned char*>(destination);
  const auto* bad = std::find_if(bytes, bytes + entry.size_bytes(), [](unsigned char byte) { return byte > 1; });
  if (bad != bytes + entry.size_bytes())
    complain("byte ", data_begin_ + entry.begin + uint64_t(bad - bytes), ": tensor '", printable(entry.name),
             "': found ", int(*bad), " in a BOOL tensor, expected 0 or 1");
}

Tensor SafetensorsFile::tensor(const SafetensorsEntry& entry, Where where) const {
  const FileComplaint complain{path_, where};
  const std::string what = join("tensor '", printable(entry.name), "': ");
  if (!entry.dtype.own())
    complain(what, "found the type ", entry.dtype, ", which files carry but nothing computes with");
  std::vector<int64_t> sizes = entry.shape;  // strides are made of the sizes that are not 0
  std::ranges::replace(sizes, 0, 1);
  if (!safetensors_size(entry.dtype, sizes)) complain(what, "is empty, but its other sizes have no product in 63 bits");
  const Tensor out = empty(Shape(std::span<const int64_t>(entry.shape)), *entry.dtype.own(), cpu);
  read(entry, out.view().data, where);
  return out;
}

}  // namespace cinta::data
