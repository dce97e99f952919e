// Writing, syncing and renaming with the system's calls; each passes the hook that tests use to crash in it.
#include "cinta/data/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "cinta/data/file.h"

namespace cinta::data {
namespace {

thread_local FileCallHook current_hook = nullptr;

/// Runs a system call that returns -1 and sets errno; again when a signal interrupts it. Returns its result, or -1.
template <class F>
auto attempt(std::string_view call, const std::string& path, F&& run) -> decltype(run()) {
  if (const int error = file_call(call, path); error != 0) {
    errno = error;
    return -1;
  }
  for (;;)
    if (const auto result = run(); result != -1 || errno != EINTR) return result;
}

/// The file that is to be replaced: what a symbolic link leads to, and never a device or a pipe.
std::string replaceable(std::string path, Where where) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (int links = 0; links < 40 && fs::is_symlink(path, error); ++links) {
    const fs::path target = fs::read_symlink(path, error);
    path = target.is_absolute() ? target.string() : parent_of(path) + "/" + target.string();
  }
  const fs::file_status status = fs::status(path, error);
  require<FileError>(!fs::exists(status) || fs::is_regular_file(status), "file", where, path, ": is ",
                     fs::is_directory(status) ? "a directory, expected a file" : "no regular file");
  return path;
}

std::string temporary_name(const std::string& path) {
  return parent_of(path) + "/." + name_of_path(path) + ".tmp-" + std::to_string(::getpid());
}

}  // namespace

FileCallHook set_file_call_hook(FileCallHook hook) { return std::exchange(current_hook, hook); }
int file_call(std::string_view call, const std::string& path) { return current_hook ? current_hook(call, path) : 0; }

void throw_file_error(const std::string& path, std::string_view what, int error, Where where) {
  throw FileError(located("file", join(path, ": ", what, ": ", std::strerror(error)), where));
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}
std::string name_of_path(const std::string& path) { return path.substr(path.rfind('/') + 1); }

OutputFile::OutputFile(std::string path, uint64_t keep, Where where)
    : path_(std::move(path)), where_(where), size_(keep) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw_file_error(path_, "cannot be created", errno, where_);
  if (::ftruncate(descriptor_, off_t(keep)) != 0 || ::lseek(descriptor_, off_t(keep), SEEK_SET) < 0) {
    const int error = errno;
    ::close(std::exchange(descriptor_, -1));
    throw_file_error(path_, "cannot be cut", error, where_);
  }
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::write(const void* bytes, size_t count) {
  constexpr size_t chunk = 1 << 20;
  const auto* next = static_cast<const std::byte*>(bytes);
  while (count > 0) {
    const size_t wanted = std::min(count, chunk);
    const ssize_t done = attempt("write", path_, [&] { return ::write(descriptor_, next, wanted); });
    if (done < 0) throw_file_error(path_, join("writing failed at byte ", size_), errno, where_);
    crc32_ = crc32_of(std::span(next, size_t(done)), crc32_);
    next += done;
    count -= size_t(done);
    size_ += uint64_t(done);
  }
}

void OutputFile::sync() {
  if (attempt("fsync", path_, [&] { return ::fsync(descriptor_); }) < 0)
    throw_file_error(path_, "fsync failed", errno, where_);
}

void OutputFile::finish() {
  sync();
  if (::close(std::exchange(descriptor_, -1)) < 0) throw_file_error(path_, "closing failed", errno, where_);
}

AtomicFile::AtomicFile(const std::string& path, Where where)
    : path_(replaceable(path, where)), temporary_(temporary_name(path_), 0, where) {}

AtomicFile::~AtomicFile() {
  if (!committed_) ::unlink(temporary_.path().c_str());
}

void AtomicFile::commit(Where where) {
  temporary_.finish();
  rename_path(temporary_.path(), path_, where);
  committed_ = true;
  sync_directory(parent_of(path_), where);
}

void rename_path(const std::string& from, const std::string& to, Where where) {
  if (attempt("rename", to, [&] { return std::rename(from.c_str(), to.c_str()); }) < 0)
    throw_file_error(to, join("cannot be put in place of its old version (renaming ", from, ")"), errno, where);
}

bool exchange_paths(const std::string& one, const std::string& other, Where where) {
  int error = file_call("exchange", other);
  if (error == 0 && ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) != 0) error = errno;
  if (error == EINVAL || error == ENOSYS) return false;
  if (error != 0) throw_file_error(other, "cannot be replaced", error, where);
  return true;
}

void sync_directory(const std::string& path, Where where) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_file_error(path, "cannot be opened", errno, where);
  const int result = attempt("fsync", path, [&] { return ::fsync(descriptor); });
  const int error = errno;
  ::close(descriptor);
  if (result < 0) throw_file_error(path, "fsync failed", error, where);
}

}  // namespace cinta::data
