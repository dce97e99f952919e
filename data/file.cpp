// Reading through one file descriptor, zlib's inflate for gzip.
#include "cinta/data/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace cinta::data {
namespace {

/// A descriptor that closes itself.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

std::string system_reason() { return std::strerror(errno); }

bool is_gzip(std::string_view bytes) { return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

/// zlib's state, released on every way out.
struct Inflater {
  z_stream stream{};
  Inflater() { require<InternalError>(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK, "read_file", Where(), "zlib"); }
  ~Inflater() { inflateEnd(&stream); }
};

std::string gunzip(std::string_view bytes, const std::string& path, size_t limit, Where where) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  std::string out;
  size_t read = 0, written = 0;
  for (;;) {
    if (out.size() - written < (size_t{1} << 16)) out.resize(std::max(out.size() * 2, size_t{1} << 18));
    const size_t input = std::min(bytes.size() - read, size_t{1} << 30);
    const size_t room = std::min(out.size() - written, size_t{1} << 30);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + read));
    stream.avail_in = static_cast<uInt>(input);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream, Z_NO_FLUSH);
    read += input - stream.avail_in;
    written += room - stream.avail_out;
    require<FileError>(written <= limit, "read_file", where, path, ": decompressed size exceeds the limit of ", limit,
                       " bytes");
    if (status == Z_STREAM_END) {
      if (read == bytes.size()) break;
      require<FileError>(is_gzip(bytes.substr(read)), "read_file", where, path, ": byte ", read, ": ",
                         bytes.size() - read, " stray bytes after the end of the gzip data");
      inflateReset(&stream);
    } else if (status == Z_BUF_ERROR || (status == Z_OK && read == bytes.size() && stream.avail_out != 0)) {
      require<FileError>(false, "read_file", where, path, ": gzip data is truncated: it ends at byte ", read,
                         " before its checksum; fetch the file again");
    } else {
      require<FileError>(status == Z_OK, "read_file", where, path, ": gzip data is damaged near byte ", read, ": ",
                         stream.msg != nullptr ? stream.msg : "inflate failed", "; fetch the file again");
    }
  }
  out.resize(written);
  return out;
}

}  // namespace

std::string read_file(const std::string& path, size_t limit, Where where) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  require<FileError>(file.number >= 0, "read_file", where, path, ": cannot be opened: ", system_reason());
  struct stat status {};
  require<FileError>(::fstat(file.number, &status) == 0, "read_file", where, path, ": ", system_reason());
  require<FileError>(!S_ISDIR(status.st_mode), "read_file", where, path, ": is a directory, expected a file");
  const auto check_limit = [&](size_t size) {
    require<FileError>(size <= limit, "read_file", where, path, ": size exceeds the limit of ", limit, " bytes");
  };
  check_limit(static_cast<size_t>(status.st_size));  // before room is made for it
  std::string bytes;
  size_t size = 0;
  for (;;) {  // pipes and /proc files do not tell their size, so read until nothing comes
    bytes.resize(std::max(size + (size_t{1} << 16), static_cast<size_t>(status.st_size) + 1));
    const ssize_t count = ::read(file.number, bytes.data() + size, bytes.size() - size);
    if (count < 0 && errno == EINTR) continue;
    require<FileError>(count >= 0, "read_file", where, path, ": byte ", size, ": ", system_reason());
    if (count == 0) break;
    size += static_cast<size_t>(count);
    check_limit(size);
  }
  bytes.resize(size);
  return is_gzip(bytes) ? gunzip(bytes, path, limit, where) : bytes;
}

uint32_t crc32_of(std::span<const std::byte> bytes, uint32_t before) {
  if (bytes.empty()) return before;  // zlib takes a null pointer for a question of its own
  return static_cast<uint32_t>(::crc32_z(before, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

}  // namespace cinta::data
