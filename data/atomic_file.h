// Files that are replaced as a whole or not at all: written under a temporary name, fsynced, renamed.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "cinta/core/error.h"
#include "cinta/data/byte_sink.h"

namespace cinta::data {

/// A new file, or an old one cut after its first `keep` bytes and written on. Counts and sums what is written.
class OutputFile final : public ByteSink {
 public:
  explicit OutputFile(std::string path, uint64_t keep = 0, Where where = Where::current());
  ~OutputFile() override;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Throws FileError with the system's reason (disk full, quota, input/output error).
  void write(const void* bytes, size_t count) override;
  /// Returns once the bytes are on the disk.
  void sync();
  /// sync(), then the file is closed.
  void finish();

  const std::string& path() const { return path_; }
  /// Bytes in the file.
  uint64_t size() const { return size_; }
  /// CRC-32 of the bytes written here, those kept left out.
  uint32_t crc32() const { return crc32_; }

 private:
  std::string path_;
  Where where_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
  uint32_t crc32_ = 0;
};

/// Writes `.<name>.tmp-<process>` beside `path`. commit() puts it in the place of `path`; without commit, as after an
/// exception, the temporary file is removed and `path` is what it was. After a power cut `path` is the old file or the
/// new one. A symbolic link stays one: what it leads to is replaced. Throws FileError where `path` is there and is no
/// regular file: a device or a pipe must not become one.
class AtomicFile final : public ByteSink {
 public:
  explicit AtomicFile(const std::string& path, Where where = Where::current());
  ~AtomicFile() override;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* bytes, size_t count) override { temporary_.write(bytes, count); }
  void commit(Where where = Where::current());

 private:
  std::string path_;
  OutputFile temporary_;
  bool committed_ = false;
};

/// rename(2). Throws FileError.
void rename_path(const std::string& from, const std::string& to, Where where = Where::current());
/// Swaps what the two paths name in one step. False where the file system cannot do that. Throws FileError.
bool exchange_paths(const std::string& one, const std::string& other, Where where = Where::current());
/// Makes the names inside a directory survive a power cut. Throws FileError.
void sync_directory(const std::string& path, Where where = Where::current());
/// "<path>: <what>: <the system's reason for errno>" as a FileError.
[[noreturn]] void throw_file_error(const std::string& path, std::string_view what, int error, Where where);
/// The directory that holds `path`, and its last part.
std::string parent_of(const std::string& path);
std::string name_of_path(const std::string& path);

/// Called on this thread before every write, fsync, rename and exchange made here. Returns 0 to let the call happen, or
/// the errno it shall fail with. Tests crash the process in it; null, the usual value, does nothing.
using FileCallHook = int (*)(std::string_view call, const std::string& path);
/// Returns the hook that was set before.
FileCallHook set_file_call_hook(FileCallHook hook);
/// Asks the hook: what calls made elsewhere use to be seen by it as well.
int file_call(std::string_view call, const std::string& path);

}  // namespace cinta::data
