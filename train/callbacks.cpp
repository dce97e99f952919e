// What they keep between evaluations lies in the run's state, so that a resumed run decides as an uninterrupted one.
#include "cinta/train/callbacks.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <span>

#include "cinta/data/atomic_directory.h"
#include "cinta/data/file.h"
#include "cinta/train/checkpoint_names.h"
#include "cinta/train/loop.h"

namespace cinta::train {
namespace {

constexpr const char* best_value = "best.value";
constexpr const char* best_step = "best.step";
constexpr const char* best_metric = "best.metric";
constexpr const char* waited = "early_stopping.waited";
constexpr const char* reference = "early_stopping.best";
constexpr const char* watched = "early_stopping.metric";

bool every(int64_t interval, int64_t step) { return interval > 0 && step % interval == 0; }

std::string checkpoint_name(double step) { return checkpoint_prefix + std::to_string(static_cast<int64_t>(step)); }

void require_among(const std::vector<std::string>& names, const std::string& wanted) {
  std::string there;
  for (const std::string& name : names) there += (there.empty() ? "" : ", ") + name;
  require(std::ranges::count(names, wanted) > 0, "train", Where(), "the evaluation has no '", wanted,
          "' to watch; it has ", there);
}

/// Makes the link `name` point to `target` in its own directory, also over an older link.
void point(const std::string& directory, const std::string& name, const std::string& target) {
  const std::string place = directory + "/" + name, made = directory + "/." + name + data::temporary_mark;
  std::error_code error;
  std::filesystem::remove(made, error);
  std::filesystem::create_symlink(target, made, error);
  if (error) data::throw_file_error(place, "the link cannot be made", error.value(), Where());
  data::rename_path(made, place, Where());
}

/// Steps of the checkpoints in a directory, ascending.
std::vector<int64_t> checkpoint_steps(const std::string& directory) {
  std::vector<int64_t> steps;
  for (const std::string& name : data::names_in(directory, Where())) {
    int64_t step = 0;
    const char* end = name.data() + name.size();
    if (name.starts_with(checkpoint_prefix) &&
        std::from_chars(name.data() + checkpoint_prefix.size(), end, step).ptr == end)
      steps.push_back(step);
  }
  std::ranges::sort(steps);
  return steps;
}

}  // namespace

void Cadence::on_step_end(const Moment& now) {
  const RunOptions& options = now.options;
  const int64_t step = now.state.step;
  const bool last = step == options.max_steps;
  now.control.log |= last || every(options.logging_steps, step) || (step == 1 && options.logging_first_step);
  now.control.evaluate |= !last && every(options.eval_steps, step);
  now.control.save |= !last && every(options.save_steps, step);
}

void Cadence::on_epoch_end(const Moment& now) {
  const bool last = now.state.step == now.options.max_steps;
  now.control.evaluate |= !last && now.options.eval_each_epoch;
  now.control.save |= !last && now.options.save_each_epoch;
}

bool WatchedMetric::better(double value, double best, double min_delta) const {
  if (std::isnan(value) || std::isnan(best)) return !std::isnan(value);
  return greater_is_better ? value > best + min_delta : value < best - min_delta;
}

double WatchedMetric::in(const MetricFields& fields) const {
  std::vector<std::string> names;
  for (const auto& [field, value] : fields) names.push_back(field);
  require_among(names, name);
  return number(fields, name);
}

void WatchedMetric::check(const Task& task) const {
  if (const auto names = task.evaluation_names(); !names.empty()) require_among(names, name);
}

void WatchedMetric::begin(const Moment& now, const char* key, std::initializer_list<const char*> kept) const {
  const std::string text = name + (greater_is_better ? " greatest" : " least");
  const double mine = data::crc32_of(std::as_bytes(std::span(text))), before = now.state.number(key);
  const bool empty = std::ranges::all_of(kept, [&](const char* one) { return std::isnan(now.state.number(one)); });
  require(before == mine || std::isnan(before) || empty, "resume", Where(),
          "the metric_for_best_model that the run has watched so far, to compare with its best; given ", text);
  now.state.keep(key, mine);
}

std::optional<BestEvaluation> best_evaluation(const RunState& state) {
  const double value = state.number(best_value), step = state.number(best_step);
  if (std::isnan(value) || std::isnan(step)) return std::nullopt;
  return BestEvaluation{value, static_cast<int64_t>(step)};
}

void BestCheckpoint::on_check(const Moment& now) { options_.metric.check(now.task); }

void BestCheckpoint::on_train_begin(const Moment& now) {
  options_.metric.begin(now, best_metric, {best_value, best_step});
}

void BestCheckpoint::on_evaluate(const Moment& now, const MetricFields& fields) {
  const double value = options_.metric.in(fields);
  const bool saved =
      options_.save_best || now.control.save || now.control.stop || now.state.step == now.options.max_steps;
  if (!saved || !options_.metric.better(value, now.state.number(best_value))) return;
  now.state.keep(best_value, value);
  now.state.keep(best_step, static_cast<double>(now.state.step));
  now.control.save |= options_.save_best;
}

void BestCheckpoint::on_save(const Moment& now, const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path();
  const double best = now.state.number(best_step);
  point(directory, "last", data::name_of_path(path));
  if (best == static_cast<double>(now.state.step)) point(directory, "best", data::name_of_path(path));
  if (options_.save_total_limit == 0) return;
  std::vector<int64_t> steps = checkpoint_steps(directory);
  std::erase_if(steps, [&](int64_t step) { return step == now.state.step || static_cast<double>(step) == best; });
  const int64_t kept = 1 + (!std::isnan(best) && best != static_cast<double>(now.state.step));
  while (static_cast<int64_t>(steps.size()) + kept > options_.save_total_limit && !steps.empty()) {
    std::error_code error;
    std::filesystem::remove_all(directory + "/" + checkpoint_name(static_cast<double>(steps.front())), error);
    if (error) data::throw_file_error(directory, "an old checkpoint cannot be removed", error.value(), Where());
    steps.erase(steps.begin());
  }
}

void BestCheckpoint::on_train_end(const Moment& now) {
  const double best = now.state.number(best_step);
  const bool stopped = now.result.stopped_by != 0;  // to be gone on with, from the newest checkpoint
  if (!options_.load_at_end || stopped || now.options.output_dir.empty() || std::isnan(best)) return;
  now.result.checkpoint = now.options.output_dir + "/" + checkpoint_name(best);
  now.task.load(now.result.checkpoint);
  const autograd::AutocastScope types(now.options.autocast, Where());
  now.result.evaluation = now.task.evaluate();
}

EarlyStopping::EarlyStopping(Options options, Where where) : options_(std::move(options)) {
  require(options_.patience > 0 && options_.min_delta >= 0, "early_stopping", where,
          "patience is positive and min_delta not negative: ", options_.patience, ", ", options_.min_delta);
}

void EarlyStopping::on_check(const Moment& now) { options_.metric.check(now.task); }

void EarlyStopping::on_train_begin(const Moment& now) {
  options_.metric.begin(now, watched, {waited, reference});
  now.control.stop |= now.state.number(waited) >= static_cast<double>(options_.patience);
}

void EarlyStopping::on_evaluate(const Moment& now, const MetricFields& fields) {
  const double value = options_.metric.in(fields);
  if (options_.metric.better(value, now.state.number(reference), options_.min_delta)) {
    now.state.keep(reference, value);
    now.state.keep(waited, 0);
    return;
  }
  const double before = now.state.number(waited), count = std::isnan(before) ? 1 : before + 1;
  now.state.keep(waited, count);
  now.control.stop |= count >= static_cast<double>(options_.patience);
}

}  // namespace cinta::train
