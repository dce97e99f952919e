// The contract of train/trial.h from the searcher's side.
#include "tools/tune_run.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cinta/data/atomic_directory.h"
#include "cinta/data/file.h"
#include "cinta/data/strict_json.h"
#include "cinta/train/run_files.h"
#include "cinta/train/stop_signals.h"
#include "cinta/train/trial.h"
#include "tools/process.h"

namespace cinta::tools {
namespace {

using nlohmann::json;

void write_file(const std::string& path, const std::string& text) {
  data::AtomicFile file(path);
  file.write_text(text);
  file.commit();
}

/// The number `name` of a line or an evaluation, which writes NaN as a text; nothing where it is not there.
std::optional<double> number_in(const json& fields, const std::string& name) {
  const auto found = fields.find(name);
  if (found == fields.end()) return std::nullopt;
  return found->is_number() ? found->get<double>() : NAN;
}

struct Evaluation {
  int64_t step;
  double value;
};

/// Reads one number from metrics.jsonl as it grows.
class Follower {
 public:
  Follower(std::string path, std::string name) : path_(std::move(path)), name_(std::move(name)) {}

  /// What has come since the last call. A line is read once it has its end.
  std::vector<Evaluation> more() {
    std::vector<Evaluation> found;
    std::error_code missing;
    if (const auto size = std::filesystem::file_size(path_, missing); missing || size == seen_) return found;
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(seen_));
    for (std::string line; std::getline(file, line) && !file.eof(); seen_ += line.size() + 1) {
      const json fields = json::parse(line, nullptr, false);
      if (!fields.is_object() || !fields.value("step", json()).is_number_integer()) continue;  // the header
      if (const auto value = number_in(fields, name_)) found.push_back({fields["step"], *value});
    }
    return found;
  }

 private:
  std::string path_, name_;
  uintmax_t seen_ = 0;
};

std::string last_line(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) last = line;
  return last;
}

/// In one step, that the training reads the whole of it; it need not survive a power cut.
void write_verdict(const std::string& directory, const char* word, int64_t step) {
  const std::string path = directory + "/" + train::verdict_file;
  std::ofstream(path + data::temporary_mark) << word << ' ' << step << '\n';
  data::rename_path(path + data::temporary_mark, path);
}

/// Looks again and again until the training has ended; nothing where a signal came between.
std::optional<int> watch(const Arguments& words, const std::string& directory, const std::function<void()>& look) {
  const int log = ::open((directory + "/log.txt").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (log < 0) data::throw_file_error(directory + "/log.txt", "cannot be opened", errno, Where());
  Process process(words, {.out = log, .error = log});
  ::close(log);
  bool told = false;
  while (!process.ended()) {
    constexpr std::chrono::milliseconds pause(2);
    std::this_thread::sleep_for(pause);
    look();
    if (train::stop_signal() && !std::exchange(told, true)) process.send(SIGTERM);
  }
  look();
  return told ? std::nullopt : process.ended();
}

/// The result as the training wrote it; null where it did not, or was stopped.
json result_in(const std::string& path) {
  if (!std::filesystem::exists(path)) return nullptr;
  json result = data::parse_json(data::read_file(path), "tune", path);
  const json state = result.is_object() ? result.value("state", json()) : json();
  require<FileError>(state == "complete" || state == "pruned" || state == "stopped", "tune", Where(), path,
                     ": is no result of a training: ", result.dump());
  return state == "stopped" ? json() : result;
}

/// What the result says of a trial that has ended.
void take_result(const json& result, const std::string& path, const std::string& objective, Trial& trial) {
  try {
    trial.steps = result.at("steps");
    trial.epoch = result.at("epoch");
    trial.seconds = result.at("seconds");
    const auto value = number_in(result.at("evaluation"), objective);
    require(value.has_value(), "tune", Where(), "the evaluation has no '", objective,
            "', so no trial would count: ", result.at("evaluation").dump());
    trial.objective = *value;
  } catch (const json::exception& error) {
    throw FileError(join("[tune] ", path, ": is no result of a training: ", error.what()));
  }
}

}  // namespace

json params_begun(const std::string& directory, int64_t number) {
  const std::string path = directory + "/" + trial_name(number) + "/trial.json";
  return std::filesystem::exists(path) ? data::parse_json(data::read_file(path), "tune", path) : json();
}

std::optional<Trial> run_trial(const TrialCommand& command, int64_t number, const json& params,
                               const Verdict& verdict) {
  const std::string directory = command.directory + "/" + trial_name(number);
  const std::string params_path = directory + "/trial.json", result_path = directory + "/result.json";
  Trial trial{.number = number, .params = params};
  Follower follower(directory + "/metrics.jsonl", command.objective);
  bool given_up = false;
  const auto look = [&] {
    for (const auto [step, value] : follower.more()) {
      trial.values.push_back(value);
      if (given_up || !verdict) continue;
      given_up = verdict(static_cast<int64_t>(trial.values.size()), value);
      write_verdict(directory, given_up ? train::verdict_prune : train::verdict_go_on, step);
    }
  };
  train::make_directory(directory);
  const json begun = params_begun(command.directory, number);
  require<FileError>(begun.is_null() || begun == params, "tune", Where(), params_path, " is of ", begun.dump(),
                     ", now it would be ", params.dump(), "; take another --output_dir");
  json result = result_in(result_path);
  if (result.is_null()) {
    write_file(params_path, params.dump(2) + "\n");
    Arguments words{own_program()};
    words.insert(words.end(), command.words.begin(), command.words.end());
    for (const std::string& word : {std::string("--params"), params_path, std::string("--result"), result_path,
                                    std::string("--output_dir"), directory, std::string("--resume")})
      words.push_back(word);
    if (verdict) words.push_back("--await_verdict");
    const std::optional<int> code = watch(words, directory, look);
    if (!code) return std::nullopt;
    trial.exit_code = *code;
    result = result_in(result_path);
    std::filesystem::remove(directory + "/" + train::verdict_file);  // on the last evaluation
  } else {                                                           // it had ended when the search was killed
    look();
    trial.exit_code = result["state"] == "pruned" ? train::pruned_exit_code : 0;
  }
  const bool ended = trial.exit_code == 0 || trial.exit_code == train::pruned_exit_code;
  trial.state = ended && !result.is_null() ? result["state"].get<std::string>() : "failed";
  if (trial.state == "failed") {
    trial.error = last_line(directory + "/log.txt");
    return trial;
  }
  take_result(result, result_path, command.objective, trial);
  return trial;
}

}  // namespace cinta::tools
