// A file is replaced as a whole or not at all: killed at every call, every call failing, disk full, no permission.
#include "cinta/data/atomic_file.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <thread>

#include "crash.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::data;
using namespace cinta::testing;

namespace {

const std::string old_bytes = "the old file";
const std::string new_bytes(size_t{5} << 19, 'n');  // 2.5 MiB: three writes

void replace_with(const std::string& path, const std::string& bytes) {
  AtomicFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

size_t files_in(const Scratch& scratch) {
  return size_t(std::distance(std::filesystem::directory_iterator(scratch.path()), {}));
}

}  // namespace

TEST_CASE("atomic file: new, over an old one, empty, given up", "[atomic_file]") {
  const Scratch scratch;
  const auto path = scratch / "file";
  replace_with(path, "");
  CHECK(read_bytes(path).empty());
  replace_with(path, new_bytes);
  CHECK(read_bytes(path) == new_bytes);
  {
    AtomicFile file(path);
    file.write("half", 4);
    CHECK(files_in(scratch) == 2);
  }
  CHECK(read_bytes(path) == new_bytes);
  CHECK(files_in(scratch) == 1);
}

TEST_CASE("atomic file: a link stays one, and what is no file is left alone", "[atomic_file]") {
  namespace fs = std::filesystem;
  const Scratch scratch;
  fs::create_directory(scratch / "inner");
  for (const char* target : {"inner/file", "inner/none"}) {
    write_bytes(scratch / "inner/file", old_bytes);
    fs::remove(scratch / "first");
    fs::remove(scratch / "second");
    fs::create_symlink(target, scratch / "first");
    fs::create_symlink(scratch / "first", scratch / "second");
    replace_with(scratch / "second", new_bytes);
    CHECK(read_bytes(scratch / target) == new_bytes);
    CHECK(fs::is_symlink(scratch / "second"));
    CHECK(fs::is_symlink(scratch / "first"));
  }
  REQUIRE(::mkfifo((scratch / "pipe").c_str(), 0666) == 0);
  CHECK_THAT(error_of<FileError>([&] { AtomicFile(scratch / "pipe"); }), Catch::Contains("pipe: is no regular file"));
  CHECK_THAT(error_of<FileError>([&] { AtomicFile("/dev/null"); }), Catch::Contains("/dev/null: is no regular file"));
  CHECK_THAT(error_of<FileError>([&] { AtomicFile(scratch / "inner"); }), Catch::Contains("inner: is a directory"));
  CHECK(fs::is_fifo(scratch / "pipe"));
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("atomic file: size and CRC-32 are those of the bytes", "[atomic_file]") {
  const Scratch scratch;
  OutputFile file(scratch / "file");
  file.write("12345", 5);
  file.write("6789", 4);
  file.finish();
  CHECK(file.size() == 9);
  CHECK(file.crc32() == 0xCBF43926u);  // the check value of CRC-32
}

TEST_CASE("atomic file: killed at any call, the old file or the new one is there", "[atomic_file]") {
  const Scratch scratch;
  const auto path = scratch / "file";
  int n = 0, kept = 0;
  for (;; ++n) {
    write_bytes(path, old_bytes);
    const int status = killed_at(n, [&] { replace_with(path, new_bytes); });
    INFO("call " << n);
    const auto found = read_bytes(path);
    if (status == 0) {
      CHECK(found == new_bytes);
      break;
    }
    REQUIRE(status == 128 + SIGKILL);
    CHECK((found == old_bytes || found == new_bytes));
    kept += found == old_bytes;
  }
  CHECK(n == 6);     // three writes, fsync, rename, fsync of the directory
  CHECK(kept == 5);  // up to the rename
}

TEST_CASE("atomic file: any call failing is an error with the path and the reason", "[atomic_file]") {
  const Scratch scratch;
  const auto path = scratch / "weights";
  for (int n = 0;; ++n) {
    write_bytes(path, old_bytes);
    const FailingCall failing(n, ENOSPC);
    INFO("call " << n);
    std::string message;
    try {
      replace_with(path, new_bytes);
    } catch (const FileError& error) {
      message = error.what();
    }
    if (!failing.happened()) {
      CHECK(n == 6);
      break;
    }
    CHECK_THAT(message, Catch::Contains(scratch.path()) && Catch::Contains("No space left on device"));
    CHECK(read_bytes(path) == (n < 5 ? old_bytes : new_bytes));
    CHECK(files_in(scratch) == 1);
  }
}

TEST_CASE("atomic file: paths that cannot be written", "[atomic_file]") {
  const Scratch scratch;
  write_bytes(scratch / "file", "");
  CHECK_THROWS_WITH(replace_with(scratch / "absent/file", "x"), Catch::Contains("No such file or directory"));
  CHECK_THROWS_WITH(replace_with(scratch / "file/file", "x"), Catch::Contains("Not a directory"));
  std::filesystem::create_directories(scratch / "directory/inside");
  CHECK_THROWS_WITH(replace_with(scratch / "directory", "x"), Catch::Contains("is a directory"));
  CHECK(files_in(scratch) == 2);
}

TEST_CASE("atomic file: no permission keeps the old file", "[atomic_file]") {
  const Scratch scratch;
  const auto path = scratch / "file";
  write_bytes(path, old_bytes);
  ::chmod(scratch.path().c_str(), 0555);
  const int status = in_child([&] {
    if (::getuid() == 0 && ::setuid(65534) != 0) ::_exit(2);  // the administrator may write anywhere
    replace_with(path, new_bytes);
  });
  ::chmod(scratch.path().c_str(), 0755);
  CHECK(status == 1);
  CHECK(read_bytes(path) == old_bytes);
}

TEST_CASE("atomic file: a full disk keeps the old file", "[atomic_file]") {
  const Scratch scratch;
  constexpr int cannot_mount = 2, lost = 3, no_error = 4, not_clean = 5;
  const int status = in_child([&] {
    // a name space of its own, so that the small disk goes with this process
    if (::unshare(CLONE_NEWNS | (::getuid() == 0 ? 0 : CLONE_NEWUSER)) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", scratch.path().c_str(), "tmpfs", 0, "size=1m") != 0)
      ::_exit(cannot_mount);
    const auto path = scratch / "file";
    write_bytes(path, old_bytes);
    try {
      replace_with(path, new_bytes);
      ::_exit(no_error);
    } catch (const FileError&) {
    }
    if (read_bytes(path) != old_bytes) ::_exit(lost);
    if (files_in(scratch) != 1) ::_exit(not_clean);
  });
  if (status == cannot_mount) {
    WARN("skipped: this process may not mount a small disk");
    return;
  }
  CHECK(status == 0);
}
