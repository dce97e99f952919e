// Runs the built `cinta` as a child: what it printed, how it ended, and what it left.
#pragma once
#include <fcntl.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "scratch.h"

namespace cinta::testing {

using Arguments = std::vector<std::string>;

/// One list after the other.
inline Arguments operator+(Arguments left, const Arguments& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

/// How a child ended: its exit code, or 128 + the signal that killed it; what it wrote.
struct Finished {
  int code = 0;
  std::string out, error;
};

/// What a child may not do.
struct Limits {
  rlim_t file_bytes = RLIM_INFINITY;  ///< the largest file it may write
  bool nobody = false;                ///< give up root's rights first
};

/// A running `cinta`; the build puts it beside the program of the tests.
class Child {
 public:
  explicit Child(const Arguments& arguments, Limits limits = {}) {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "cinta";
    std::vector<char*> words{const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    process_ = ::fork();
    if (process_ != 0) return;
    redirect("/dev/null", O_RDONLY, STDIN_FILENO);
    redirect(scratch_ / "out", O_WRONLY | O_CREAT, STDOUT_FILENO);
    redirect(scratch_ / "error", O_WRONLY | O_CREAT, STDERR_FILENO);
    const rlimit size{limits.file_bytes, limits.file_bytes};
    constexpr unsigned no_user = 65534;
    const bool ready =
        ::setrlimit(RLIMIT_FSIZE, &size) == 0 &&
        (!limits.nobody || (::setgroups(0, nullptr) == 0 && ::setgid(no_user) == 0 && ::setuid(no_user) == 0));
    if (ready) ::execv(program.c_str(), words.data());
    ::_exit(cannot_start);
  }
  ~Child() {
    if (process_ > 0) ::kill(process_, SIGKILL), wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void send(int signal) const { ::kill(process_, signal); }
  bool running() const {
    siginfo_t info{};
    return ::waitid(P_PID, id_t(process_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
  }
  Finished wait() {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = 0;
    return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), read_bytes(scratch_ / "out"),
            read_bytes(scratch_ / "error")};
  }

  static constexpr int cannot_start = 126;

 private:
  static void redirect(const std::string& path, int flags, int to) {
    const int from = ::open(path.c_str(), flags, 0666);
    if (from < 0 || ::dup2(from, to) < 0) ::_exit(cannot_start);
  }

  Scratch scratch_;
  pid_t process_ = 0;
};

inline Finished run_cinta(const Arguments& arguments, Limits limits = {}) { return Child(arguments, limits).wait(); }

}  // namespace cinta::testing
