// Runs the built `cinta` as a child: what it printed, how it ended, and what it left.
#pragma once
#include <fcntl.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "scratch.h"

namespace cinta::testing {

using Arguments = std::vector<std::string>;

/// One list after the other.
inline Arguments operator+(Arguments left, const Arguments& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

/// How a child ended: its exit code, or 128 + the signal that killed it; what it wrote; the most memory that it, or we
/// before it, had in use at once.
struct Finished {
  int code = 0;
  std::string out, error;
  int64_t peak_bytes = 0;
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
        ::setenv("XDG_CACHE_HOME", scratch_.path().c_str(), 1) == 0 && ::setrlimit(RLIMIT_FSIZE, &size) == 0 &&
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
    rusage usage{};
    while (::wait4(process_, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    process_ = 0;
    return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), read_bytes(scratch_ / "out"),
            read_bytes(scratch_ / "error"), usage.ru_maxrss * 1024};
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

inline bool root() { return ::geteuid() == 0; }
/// Whether the program can be started with fewer rights than the tests have.
inline bool can_be_nobody() { return !root() || run_cinta({"--help"}, {.nobody = true}).code != Child::cannot_start; }

using Parts = std::vector<std::string>;

/// Whether a place in our sources is in `text`, "file.cpp:12", which tells a user nothing.
inline bool names_source(const std::string& text) {
  for (const std::string ending : {".cpp:", ".h:"})
    for (size_t at = text.find(ending); at != text.npos; at = text.find(ending, at + 1))
      if (at + ending.size() < text.size() && std::isdigit(static_cast<unsigned char>(text[at + ending.size()])))
        return true;
  return false;
}

/// Exit code 2 and one line that holds all of `parts`.
inline void check_refused(const Arguments& arguments, const Parts& parts, Limits limits = {}) {
  std::string line;
  for (const std::string& argument : arguments) line += argument + ' ';
  const Finished finished = run_cinta(arguments, limits);
  INFO(line << "\n" << finished.error);
  CHECK(finished.code == 2);
  CHECK(finished.error.starts_with("cinta: "));
  CHECK(std::ranges::count(finished.error, '\n') == 1);
  CHECK(finished.error.ends_with('\n'));
  CHECK(!names_source(finished.error));
  for (const std::string& part : parts) CHECK(finished.error.find(part) != std::string::npos);
}

/// The same, and the directory that a run would have made is not there.
inline void check_refused_early(const Scratch& scratch, Arguments (*command)(const std::string&, const std::string&),
                                const std::string& data, const Arguments& more, const Parts& parts) {
  check_refused(command(data, scratch / "refused") + more, parts);
  CHECK(std::filesystem::remove_all(scratch / "refused") == 0);
}

/// Trains a small perceptron.
inline Arguments mlp(const std::string& data, const std::string& directory, const std::string& steps = "4") {
  return {"train",     "mlp", "--data",   data, "--output_dir",    directory, "--max_steps", steps,
          "--threads", "1",   "--hidden", "32", "--logging_steps", "5",       "--quiet"};
}

inline Arguments train_mlp(const std::string& data, const std::string& directory) { return mlp(data, directory); }

/// `text` with the first `old` in it replaced.
inline std::string replaced(std::string text, const std::string& old, const std::string& by) {
  const size_t at = text.find(old);
  REQUIRE(at != text.npos);
  return text.replace(at, old.size(), by);
}

/// True iff the file is there and has `text` in it.
inline bool holds(const std::string& path, const std::string& text) {
  return std::filesystem::exists(path) && read_bytes(path).find(text) != std::string::npos;
}

/// Twenty steps of a small perceptron.
inline Arguments short_training(const std::string& directory, const Arguments& more = {}) {
  return Arguments{"train",    "mlp", "--data",    "generated", "--output_dir",    directory, "--max_steps", "20",
                   "--hidden", "8",   "--threads", "1",         "--logging_steps", "5",       "--quiet"} +
         more;
}

/// A variable of the environment for a scope.
struct Variable {
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  const char* name_;
};

/// Every file below a directory, by name.
inline std::vector<std::pair<std::string, std::string>> contents(const std::string& directory) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) out.emplace_back(entry.path().lexically_relative(directory), read_bytes(entry.path()));
  std::ranges::sort(out);
  return out;
}

/// Text files that differ in most lines.
inline std::string write_texts(const Scratch& scratch, const std::string& name, const std::string& word) {
  std::filesystem::create_directory(scratch / name);
  for (int file = 0; file < 8; ++file) {
    std::string text;
    for (int line = 0; line < 16; ++line)
      text += "int " + word + std::to_string(file * line) + " = name" + std::to_string(file) + " + other" +
              std::to_string(file + line) + ";\n";
    write_bytes(scratch / (name + "/" + std::to_string(file) + ".txt"), text);
  }
  return scratch / name;
}

}  // namespace cinta::testing
