// IDX, the format of the MNIST family: a small header, then big-endian numbers; often gzip.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cinta/core/error.h"
#include "cinta/data/examples.h"

namespace cinta::data {

/// The type byte of the header.
enum class IdxType : uint8_t { u8 = 0x08, i8 = 0x09, i16 = 0x0B, i32 = 0x0C, f32 = 0x0D, f64 = 0x0E };

struct IdxArray {
  IdxType type = IdxType::u8;
  std::vector<int64_t> sizes;  ///< one to four dimensions
  std::vector<double> values;  ///< row-major, whatever the type; all finite and in the range of f32
};

/// Whether a file begins as those of IDX do, and no text does.
inline bool looks_like_idx(std::string_view bytes) { return bytes.starts_with(std::string_view("\0\0", 2)); }

/// Reads an IDX file, plain or gzip. Throws FileError: wrong magic, unknown type, no or more than four dimensions, a
/// size that overflows, too few or too many bytes, damaged gzip.
IdxArray read_idx(const std::string& path, Where where = Where::current());

/// The same from memory; `name` stands for the file in messages.
IdxArray parse_idx(std::string_view bytes, const std::string& name, Where where = Where::current());

/// A labelled set from a file of images and one of labels; images are flattened. Throws FileError when the files are
/// swapped, their counts differ, or a label is not a class (`classes` as for set_labels).
Examples read_idx_examples(const std::string& images, const std::string& labels, int64_t classes = 0,
                           Where where = Where::current());

}  // namespace cinta::data
