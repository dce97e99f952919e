// Whole files read at once, plain or gzip, with errors that say what is wrong and where.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "cinta/core/error.h"

namespace cinta::data {

/// No reader takes more than this from one file (after decompression), so that a damaged or hostile gzip cannot eat the
/// machine's memory.
inline constexpr size_t maximum_file_bytes = size_t{4} << 30;

/// The bytes of the file, decompressed when it starts with gzip's magic (several gzip members in a row are joined).
/// Throws FileError: missing, a directory, no permission, gzip truncated or with a wrong checksum, too large.
std::string read_file(const std::string& path, size_t limit = maximum_file_bytes, Where where = Where::current());

/// CRC-32 of `bytes`, going on from that of what stood before them.
uint32_t crc32_of(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace cinta::data
