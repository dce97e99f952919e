// Another program, started and watched.
#pragma once
#include <sys/types.h>

#include <optional>

#include "tools/settings.h"

namespace cinta::tools {

/// A child in a process group of its own, so that Ctrl-C is for this program, which then tells the child; and that gets
/// SIGTERM when this program dies (Linux). Inherits the descriptors that are not closed on exec.
class Process {
 public:
  /// Descriptors; -1 is /dev/null.
  struct Streams {
    int in = -1, out = -1, error = -1;
  };
  static constexpr int cannot_start = 127;

  /// Starts words[0], looked for in PATH. One that cannot be started ends with the code cannot_start.
  Process(const Arguments& words, Streams streams);
  /// Asks a child that is still there to end, and waits for that.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const;
  /// How the child ended: its exit code, or 128 + the signal that killed it; nothing while it goes on.
  std::optional<int> ended();

 private:
  std::optional<int> reap(int flags);
  pid_t process_;
  std::optional<int> code_;
};

/// This very program.
std::string own_program();

}  // namespace cinta::tools
