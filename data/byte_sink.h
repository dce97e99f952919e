// Where a writer of bytes puts them: a file, a checkpoint member, a buffer in a test.
#pragma once
#include <cstddef>
#include <string_view>

namespace cinta::data {

struct ByteSink {
  virtual ~ByteSink() = default;
  /// Appends `count` bytes; throws FileError where they cannot be kept.
  virtual void write(const void* bytes, size_t count) = 0;
  void write_text(std::string_view text) { write(text.data(), text.size()); }
};

}  // namespace cinta::data
