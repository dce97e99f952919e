// Runs code in a child process that dies, or whose file calls fail, at a chosen write, fsync or rename.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <string>

#include "cinta/data/atomic_file.h"

namespace cinta::testing {

inline int calls_until_trouble = 0;
inline int trouble = 0;  // an errno, or 0 to be killed

/// The hook: lets `calls_until_trouble` calls pass.
inline int make_trouble(std::string_view, const std::string&) {
  if (calls_until_trouble-- != 0) return 0;
  if (trouble == 0) ::kill(::getpid(), SIGKILL);
  return trouble;
}

/// Runs `body` in a child. Returns 0 when it came to its end, 1 when it threw, else 128 + the signal that killed it.
template <class Body>
int in_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      body();
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Runs `body` in a child that is killed just before its call number `n`.
template <class Body>
int killed_at(int n, Body&& body) {
  return in_child([&] {
    calls_until_trouble = n;
    trouble = 0;
    data::set_file_call_hook(make_trouble);
    body();
  });
}

/// While alive, call number `n` of this thread fails with `error`.
class FailingCall {
 public:
  FailingCall(int n, int error) {
    calls_until_trouble = n;
    trouble = error;
    data::set_file_call_hook(make_trouble);
  }
  ~FailingCall() { data::set_file_call_hook(nullptr); }
  /// True once the call has been made and has failed.
  bool happened() const { return calls_until_trouble < 0; }
};

}  // namespace cinta::testing
