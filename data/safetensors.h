// Reads and writes .safetensors files: u64 little-endian N, N bytes of JSON, then the tensors' bytes without gaps.
// The reader refuses whatever is not exactly one well-formed file, and says where. It maps nothing and runs nothing.
// Format: https://github.com/huggingface/safetensors
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cinta/data/byte_sink.h"
#include "cinta/data/stored_dtype.h"

namespace cinta {
class Tensor;
}

namespace cinta::data {

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// One tensor as the header describes it. Its bytes are [begin, end) counted from the end of the header.
struct SafetensorsEntry {
  std::string name;
  StoredDtype dtype = Dtype::f32;
  std::vector<int64_t> shape;
  uint64_t begin;
  uint64_t end;

  uint64_t size_bytes() const { return end - begin; }
};

/// An open file whose header has passed every check. Reading a tensor copies its bytes.
class SafetensorsFile {
 public:
  /// Throws FileError naming the file, the tensor or byte, what was found and what was expected.
  static SafetensorsFile open(const std::string& path, Where where = Where::current());
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;

  const std::string& path() const { return path_; }
  /// In the order of their bytes.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  const Metadata& metadata() const { return metadata_; }
  /// The tensor called `name`, or null.
  const SafetensorsEntry* find(std::string_view name) const;
  /// Copies the tensor, row-major, into `destination`, which holds entry.size_bytes() bytes.
  void read(const SafetensorsEntry& entry, void* destination, Where where = Where::current()) const;
  /// The same as a tensor of the host. Throws FileError for a type that files only carry, and for an empty tensor whose
  /// other sizes have no product.
  Tensor tensor(const SafetensorsEntry& entry, Where where = Where::current()) const;

 private:
  SafetensorsFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
  uint64_t data_begin_ = 0;
  std::vector<SafetensorsEntry> entries_;
  Metadata metadata_;
};

/// A contiguous row-major tensor to be written. The bytes stay the caller's.
struct TensorBytes {
  std::string name;
  StoredDtype dtype;
  std::vector<int64_t> shape;
  const void* bytes;
};

/// Writes one file into `sink`, byte for byte as the Python library would: tensors by falling alignment, then name.
/// Throws ValueError for names that no reader would take (empty, twice, control characters, not UTF-8).
void write_safetensors(ByteSink& sink, std::vector<TensorBytes> tensors, const Metadata& metadata = {{"format", "pt"}},
                       Where where = Where::current());

/// The same into the file `path`, which is replaced as a whole or not at all.
void save_safetensors(const std::string& path, std::vector<TensorBytes> tensors,
                      const Metadata& metadata = {{"format", "pt"}}, Where where = Where::current());

}  // namespace cinta::data
