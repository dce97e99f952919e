// One JSON object a line each way; tune_optuna.py says which.
#include "tools/tune_optuna.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

namespace cinta::tools {
namespace {

using nlohmann::json;

/// Beside the program, in the build tree as where it is installed.
std::string driver() {
  const auto path = std::filesystem::path(own_program()).parent_path() / "../share/cinta/tune_optuna.py";
  require<FileError>(std::filesystem::exists(path), "tune", Where(), path.lexically_normal().string(),
                     ": is not there; it was installed with this program");
  return path;
}

}  // namespace

Optuna::Optuna(const OptunaOptions& options, const Space& space, const std::vector<Trial>& finished)
    : options_(options) {
  const std::string program = driver();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    data::throw_file_error(program, "cannot be talked to", errno, Where());
  socket_ = ends[0];
  const int errors = ::open(options.error_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  process_.emplace(Arguments{options.python, program},
                   Process::Streams{.in = ends[1], .out = ends[1], .error = errors});
  ::close(ends[1]);
  if (errors >= 0) ::close(errors);
  json request = {{"op", "begin"},
                  {"sampler", options.sampler},
                  {"pruner", options.pruner},
                  {"storage", options.storage},
                  {"study", options.study},
                  {"direction", options.maximize ? "maximize" : "minimize"},
                  {"seed", options.seed},
                  {"warmup", options.warmup},
                  {"space", json::object()},
                  {"finished", json::array()}};
  for (const Parameter& parameter : space) request["space"][parameter.name] = parameter.distribution;
  for (const Trial& trial : finished) request["finished"].push_back(json(json_of(trial)));
  call(request);
}

Optuna::~Optuna() {
  ::shutdown(socket_, SHUT_RDWR);  // it ends at the end of its input
  ::close(socket_);
}

json Optuna::call(const json& request) {
  const std::string line = request.dump() + "\n";
  const auto lost = [&](const std::string& said) {
    const std::string why = said.empty() ? options_.python + " ended; see " + options_.error_file : said;
    const char* remedy = request["op"] == "begin"
                             ? "; Optuna comes with apt-get install python3-optuna, or pip install "
                               "optuna and --python; random and grid without a pruner need none"
                             : "";
    throw ValueError(join("[tune] Optuna: ", why, remedy));
  };
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t count = ::send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) lost("");
    sent += static_cast<size_t>(count);
  }
  size_t end;
  while ((end = unread_.find('\n')) == unread_.npos) {
    char bytes[4096];
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) lost("");
    unread_.append(bytes, static_cast<size_t>(count));
  }
  const json answer = json::parse(unread_.begin(), unread_.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
  unread_.erase(0, end + 1);
  if (!answer.is_object()) lost("answered what is no JSON object");
  if (answer.contains("error")) lost(answer["error"].get<std::string>());
  return answer;
}

json Optuna::ask(int64_t number, const json& given) {
  return call({{"op", "ask"}, {"trial", number}, {"params", given}}).at("params");
}

bool Optuna::prune(int64_t evaluation, double value) {
  return call({{"op", "report"}, {"evaluation", evaluation}, {"value", value}}).at("prune").get<bool>();
}

void Optuna::tell(const Trial& trial) { call({{"op", "tell"}, {"trial", json(json_of(trial))}}); }

}  // namespace cinta::tools
