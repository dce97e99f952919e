// The header is checked against the bytes that follow before anything is reserved for it.
#include "cinta/data/idx.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "cinta/data/file.h"

namespace cinta::data {
namespace {

/// A big-endian unsigned number of `width` bytes.
uint64_t big_endian(std::string_view bytes, size_t at, size_t width) {
  uint64_t out = 0;
  for (size_t i = 0; i < width; ++i) out = out << 8 | static_cast<unsigned char>(bytes[at + i]);
  return out;
}

/// Bytes of one element; 0 for a type byte that IDX does not have.
size_t width_of(IdxType type) {
  switch (type) {
    case IdxType::u8:
    case IdxType::i8:
      return 1;
    case IdxType::i16:
      return 2;
    case IdxType::i32:
    case IdxType::f32:
      return 4;
    case IdxType::f64:
      return 8;
  }
  return 0;
}

double element(std::string_view bytes, size_t at, IdxType type) {
  const uint64_t word = big_endian(bytes, at, width_of(type));
  switch (type) {
    case IdxType::u8:
      return static_cast<double>(word);
    case IdxType::i8:
      return static_cast<int8_t>(word);
    case IdxType::i16:
      return static_cast<int16_t>(word);
    case IdxType::i32:
      return static_cast<int32_t>(word);
    case IdxType::f32:
      return std::bit_cast<float>(static_cast<uint32_t>(word));
    case IdxType::f64:
      return std::bit_cast<double>(word);
  }
  return 0;
}

}  // namespace

IdxArray parse_idx(std::string_view bytes, const std::string& name, Where where) {
  const auto check = [&](bool ok, size_t at, const auto&... parts) {
    require<FileError>(ok, "idx", where, name, ": byte ", at, ": ", parts...);
  };
  check(bytes.size() >= 4, 0, "found ", bytes.size(), " bytes, expected a header of at least 8");
  check(bytes[0] == 0 && bytes[1] == 0, 0, "found ", big_endian(bytes, 0, 2), ", expected two zero bytes; is it IDX?");
  const auto type = static_cast<IdxType>(bytes[2]);
  const size_t width = width_of(type);
  check(width > 0, 2, "found type ", big_endian(bytes, 2, 1), ", expected one of 8, 9, 11, 12, 13, 14");
  const size_t rank = big_endian(bytes, 3, 1), header = 4 + 4 * rank;
  check(rank >= 1 && rank <= 4, 3, "found ", rank, " dimensions, expected 1 to 4");
  check(bytes.size() >= header, bytes.size(), "the file ends inside its header of ", header, " bytes");
  IdxArray out{type, {}, {}};
  const uint64_t present = bytes.size() - header;
  uint64_t expected = width;
  for (size_t dim = 0; dim < rank; ++dim) {
    const uint64_t size = big_endian(bytes, 4 + 4 * dim, 4);
    out.sizes.push_back(static_cast<int64_t>(size));
    expected = size == 0 ? 0 : expected;
  }
  for (size_t dim = 0; dim < rank; ++dim) {
    const auto size = static_cast<uint64_t>(out.sizes[dim]);
    check(size == 0 || expected <= maximum_file_bytes / size, 4 + 4 * dim, "the sizes ask for more than ",
          maximum_file_bytes, " bytes");
    expected *= size;
  }
  check(present >= expected, bytes.size(), "the file ends after ", present, " data bytes, expected ", expected,
        "; it is truncated");
  check(present == expected, header + expected, present - expected, " stray bytes after the data");
  out.values.reserve(expected / width);
  for (size_t at = header; at < bytes.size(); at += width) {
    out.values.push_back(element(bytes, at, type));
    check(std::isfinite(static_cast<float>(out.values.back())), at, "found ", out.values.back(),
          ", expected a finite number that fits f32");
  }
  return out;
}

IdxArray read_idx(const std::string& path, Where where) {
  return parse_idx(read_file(path, maximum_file_bytes, where), path, where);
}

Examples read_idx_examples(const std::string& images, const std::string& labels, int64_t classes, Where where) {
  IdxArray pictures = read_idx(images, where);
  const IdxArray names = read_idx(labels, where);
  require<FileError>(pictures.sizes.size() >= 2, "idx", where, images,
                     ": found 1 dimension, expected images of at least 2; this is a labels file");
  require<FileError>(names.sizes.size() == 1, "idx", where, labels, ": found ", names.sizes.size(),
                     " dimensions, expected labels of 1; this is an images file");
  require<FileError>(pictures.sizes[0] == names.sizes[0], "idx", where, images, " has ", pictures.sizes[0],
                     " images, but ", labels, " has ", names.sizes[0], " labels");
  require<FileError>(!pictures.values.empty(), "idx", where, images, ": has no images");
  Examples out{pictures.sizes[0], static_cast<int64_t>(pictures.values.size()) / pictures.sizes[0], 0, {}, {}};
  out.inputs = std::move(pictures.values);
  set_labels(
      out, names.values, classes, labels, [](int64_t i) { return join("label ", i); }, where);
  return out;
}

}  // namespace cinta::data
