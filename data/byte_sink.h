// Where a writer of bytes puts them: a file, a checkpoint member, a buffer in a test.
#pragma once
#include <cstddef>

namespace cinta::data {

struct ByteSink {
  virtual ~ByteSink() = default;
  /// Appends `count` bytes; throws FileError where they cannot be kept.
  virtual void write(const void* bytes, size_t count) = 0;
};

}  // namespace cinta::data
