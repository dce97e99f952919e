// fork and exec; between the two, only what is safe there.
#include "tools/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "cinta/data/atomic_file.h"

namespace cinta::tools {

Process::Process(const Arguments& words, Streams streams) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ < 0) data::throw_file_error(words.front(), "no process can be made", errno, Where());
  if (process_ > 0) return;
  ::setpgid(0, 0);
#ifdef __linux__
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
  bool ready = ::getppid() == parent;
  const int given[] = {streams.in, streams.out, streams.error};
  for (int stream = 0; stream < 3; ++stream) {
    const int from = given[stream] >= 0 ? given[stream] : ::open("/dev/null", O_RDWR);
    ready = ready && from >= 0 && ::dup2(from, stream) == stream;
  }
  if (ready) ::execvp(arguments.front(), arguments.data());
  ::_exit(cannot_start);
}

Process::~Process() {
  if (code_) return;
  send(SIGTERM);
  reap(0);
}

void Process::send(int signal) const {
  if (!code_) ::kill(process_, signal);
}

std::optional<int> Process::reap(int flags) {
  int status = 0;
  pid_t found;
  while ((found = ::waitpid(process_, &status, flags)) < 0 && errno == EINTR) {
  }
  if (found == process_) code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return code_;
}

std::optional<int> Process::ended() { return code_ ? code_ : reap(WNOHANG); }

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

}  // namespace cinta::tools
