// The result of a trial, and the verdict on it.
#include "cinta/train/trial.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cinta/core/context.h"
#include "cinta/data/atomic_file.h"
#include "cinta/train/loop.h"

namespace cinta::train {
namespace {

void remove_file(const std::string& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) data::throw_file_error(path, "cannot be removed", error.value(), Where());
}

}  // namespace

TrialReport::TrialReport(Options options) : options_(std::move(options)) {
  const std::string folder = data::parent_of(options_.result_path);
  require<FileError>(std::filesystem::is_directory(folder), "train", Where(), "--result ", options_.result_path,
                     ": there is no directory ", folder);
  require<FileError>(!std::filesystem::is_directory(options_.result_path), "train", Where(), "--result ",
                     options_.result_path, ": is a directory, expected a file");
}

void TrialReport::on_check(const Moment& now) { options_.objective.check(now.task); }

void TrialReport::on_train_begin(const Moment& now) {
  remove_file(options_.result_path);
  if (now.options.output_dir.empty()) return;
  verdict_path_ = now.options.output_dir + "/" + verdict_file;
  if (!now.options.resume) remove_file(verdict_path_);         // an older run's
  if (now.state.evaluated_step == now.state.step) await(now);  // stopped before it was heard
}

bool TrialReport::obey(const Moment& now) const {
  if (::access(verdict_path_.c_str(), F_OK) != 0) return false;
  std::ifstream file(verdict_path_);
  std::string word;
  int64_t step = 0;
  if (!(file >> word >> step)) return false;  // not yet written to its end
  if (word == verdict_prune && step <= now.state.step) now.control.stop = now.result.pruned = true;
  return step >= now.state.step || now.result.pruned;
}

void TrialReport::on_step_end(const Moment& now) {
  const bool last = now.state.step == now.options.max_steps;
  if (!last && !options_.await_verdict && !verdict_path_.empty()) obey(now);
}

void TrialReport::on_evaluate(const Moment& now, const MetricFields&) { await(now); }

void TrialReport::await(const Moment& now) const {
  const bool last = now.state.step == now.options.max_steps || now.control.stop;
  if (last || !options_.await_verdict || verdict_path_.empty()) return;
  while (!obey(now) && !now.options.stop.number()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void TrialReport::on_train_end(const Moment& now) {
  const RunResult& result = now.result;
  if (result.stopped_by) now.result.pruned = false;  // the verdict is still there when it is gone on with
  nlohmann::ordered_json json;
  json["state"] = result.stopped_by ? "stopped" : result.pruned ? "pruned" : "complete";
  json["steps"] = result.steps;
  json["skipped_steps"] = result.skipped;
  json["epoch"] = now.epoch;
  json["seconds"] = result.seconds;
  json["evaluation"] = nlohmann::ordered_json::parse(json_of(result.evaluation));
  json["value"] =
      json["evaluation"].contains(options_.objective.name) ? json["evaluation"][options_.objective.name] : nullptr;
  if (const std::vector<optim::Parameter> parameters = now.task.model().parameters(); !parameters.empty()) {
    const MemoryStatistics memory = memory_statistics(parameters.front().tensor.device());
    for (int i = 0; i < category_count; ++i)
      json["peak_bytes"][name_of(static_cast<Category>(i))] = memory.peak[static_cast<size_t>(i)];
  }
  data::AtomicFile file(options_.result_path);
  file.write_text(json.dump(2) + "\n");
  file.commit();
  if (!result.stopped_by && !verdict_path_.empty()) remove_file(verdict_path_);
}

}  // namespace cinta::train
