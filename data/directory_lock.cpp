// flock(2) on the directory itself.
#include "cinta/data/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "cinta/data/atomic_file.h"

namespace cinta::data {

DirectoryLock::DirectoryLock(const std::string& directory, std::chrono::milliseconds patience, bool inherited,
                             Where where)
    : descriptor_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | (inherited ? 0 : O_CLOEXEC))) {
  if (descriptor_ < 0) throw_file_error(directory, "cannot be opened", errno, where);
  const auto end = std::chrono::steady_clock::now() + patience;
  while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
    if (std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    ::close(descriptor_);
    throw FileError(located(
        "lock", directory + ": another process is at work here; wait for its end, or take another directory", where));
  }
}

DirectoryLock::~DirectoryLock() { ::close(descriptor_); }

}  // namespace cinta::data
