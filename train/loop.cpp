// One step is: clear gradients, forward and backward each micro-batch, update. The rest is bookkeeping around it.
#include "cinta/train/loop.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "cinta/autograd/anomaly.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/context.h"
#include "cinta/optim/accumulation.h"
#include "cinta/train/checkpoint_directory.h"
#include "cinta/train/checkpoint_names.h"
#include "cinta/train/progress.h"
#include "cinta/train/run_state.h"

namespace cinta::train {
namespace {

using Clock = std::chrono::steady_clock;

class Run {
 public:
  Run(Task& task, RunOptions options, const MetricFields& header, Where where)
      : task_(task),
        options_(std::move(options)),
        where_(where),
        optimizer_(task.model().parameters(), options_.optimizer, where) {
    if (options_.schedule.total == 0) options_.schedule.total = options_.max_steps;
    optim::check(options_.schedule, where);
    require(options_.max_steps > 0 && options_.accumulation_steps > 0 && options_.logging_steps > 0, "train", where,
            "max_steps, gradient_accumulation_steps and logging_steps are positive");
    require(options_.eval_steps >= 0 && options_.save_steps >= 0 && options_.max_grad_norm >= 0, "train", where,
            "eval_steps, save_steps and max_grad_norm are not negative");
    if (!options_.output_dir.empty()) open_directory(header);
    loader_.emplace(task.batches(), state_.step * options_.accumulation_steps);
  }

  RunResult finish() {
    Progress progress({.total_steps = options_.max_steps,
                       .first_step = state_.step,
                       .plain_every = 10 * options_.logging_steps,
                       .items = task_.progress_unit(),
                       .quiet = options_.quiet});
    std::optional<autograd::AnomalyScope> anomaly;
    if (options_.detect_anomaly) anomaly.emplace();
    const Clock::time_point start = Clock::now();
    RunResult result;
    while (state_.step < options_.max_steps && !stopped()) {
      const Tensor norm = step();
      ++state_.step;
      if (state_.step % options_.logging_steps == 0 || state_.step == options_.max_steps) log(norm, result, progress);
      const bool last = state_.step == options_.max_steps;
      if (options_.eval_steps && state_.step % options_.eval_steps == 0 && !last) evaluate();
      if (options_.save_steps && state_.step % options_.save_steps == 0 && !last && !stopped()) save();
    }
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    result.items_per_second = progress_items_ / result.seconds;
    result.steps = state_.step;
    if (stopped()) {
      result.stopped_by = static_cast<int>(*options_.stop);
    } else {
      result.evaluation = evaluate();
    }
    result.checkpoint = save();
    return result;
  }

 private:
  bool stopped() const { return options_.stop && *options_.stop != 0; }

  /// One update of the weights; returns the gradient norm.
  Tensor step() {
    const int64_t micro_batches = options_.accumulation_steps;
    std::vector<data::Batch> window;
    std::vector<int64_t> items;
    for (int64_t i = 0; i < micro_batches; ++i) {
      window.push_back(loader_->next());
      items.push_back(window.back().items);
      state_.items += window.back().items;
      progress_items_ += static_cast<double>(task_.progress_items(window.back()));
    }
    const Device device = optimizer_.units().front().groups().front().weights.device();
    const Tensor seed = optim::accumulation_seed(items, Dtype::f32, device);
    optimizer_.zero_gradients();
    if (Random* random = task_.random()) random->set_step(state_.step);
    for (int64_t i = 0; i < micro_batches; ++i) {
      if (Random* random = task_.random()) random->set_first_sample(i * task_.samples_per_batch());
      const Forward forward = task_.forward(window[static_cast<size_t>(i)]);
      autograd::backward(forward.loss_sum, {.seeds = {seed}});
      losses_.push_back(detach(forward.loss_sum));
      correct_.push_back(forward.correct);
    }
    return optimizer_.step(
        {.rate_factor = optim::rate_factor(options_.schedule, state_.step), .max_norm = options_.max_grad_norm},
        where_);
  }

  /// Adds up what the micro-batches left; the first place where a loss that is no number is seen.
  void read_sums() {
    for (const Tensor& loss : losses_) state_.loss_sum += item(loss);
    for (const Tensor& count : correct_) state_.correct_sum += item(count);
    losses_.clear();
    correct_.clear();
    require(std::isfinite(state_.loss_sum), "train", where_, "the loss is ", state_.loss_sum, " at step ", state_.step,
            "; --detect_anomaly finds the op that made it");
  }

  void log(const Tensor& norm, RunResult& result, Progress& progress) {
    read_sums();
    const double items = static_cast<double>(std::max<int64_t>(1, state_.items));
    result.loss = state_.loss_sum / items;
    const double accuracy = state_.correct_sum / items;
    const double rate = optimizer_.rate() * optim::rate_factor(options_.schedule, state_.step - 1);
    write(
        state_.step,
        {{"loss", result.loss}, {task_.accuracy_name(), accuracy}, {"grad_norm", item(norm)}, {"learning_rate", rate}});
    const std::vector<Shown> shown{{"loss", result.loss}, {task_.accuracy_name(), accuracy}};
    progress.update(state_.step, shown, progress_items_);
    state_.loss_sum = state_.correct_sum = 0;
    state_.items = 0;
  }

  /// Evaluates; a resumed run finds its line in the metrics already.
  MetricFields evaluate() {
    MetricFields fields = task_.evaluate();
    if (state_.evaluated_step != state_.step) write(state_.step, fields);
    state_.evaluated_step = state_.step;
    return fields;
  }

  void write(int64_t step, const MetricFields& fields) {
    if (metrics_) metrics_->append(step, fields, where_);
  }

  /// Says which checkpoints are passed over. A run whose every checkpoint is damaged is not begun anew over them.
  void report_skipped(const CheckpointSearch& search) {
    for (const std::string& fault : search.skipped) {
      const bool was_whole = fault.starts_with(checkpoint_prefix);
      require<FileError>(search.newest || options_.overwrite || !was_whole, "resume", where_, options_.output_dir,
                         " has no whole checkpoint; --overwrite starts anew: ", fault);
      if (!options_.quiet) std::fprintf(stderr, "skipped %s\n", fault.c_str());
    }
  }

  void open_directory(const MetricFields& header) {
    const std::string metrics = options_.output_dir + "/metrics.jsonl";
    const CheckpointSearch search = newest_checkpoint(options_.output_dir, where_);
    if (options_.resume) report_skipped(search);
    if (options_.resume && search.newest) {
      task_.load(search.newest->path);
      state_ = read_run_state(search.newest->path, optimizer_, where_);
      require(options_.max_steps >= state_.step, "resume", where_, "the run has done ", state_.step,
              " steps already, max_steps is ", options_.max_steps);
      metrics_ = MetricsLog::resume(metrics, header, state_.step, where_);
      return;
    }
    const bool begun = has_steps(metrics, where_);
    const bool ended = std::filesystem::exists(options_.output_dir + "/model.safetensors");
    require(options_.overwrite || options_.resume || !(search.newest || begun || ended), "train", where_,
            options_.output_dir, " already holds a run; --resume goes on with it, --overwrite starts anew");
    make_directory(options_.output_dir, where_);
    remove_checkpoints(options_.output_dir, where_);
    metrics_ = MetricsLog::create(metrics, header, where_);
  }

  /// Writes a checkpoint and returns its directory.
  std::string save() {
    if (options_.output_dir.empty()) return {};
    read_sums();
    metrics_->sync();
    CheckpointWriter writer(options_.output_dir, state_.step, where_);
    task_.save(writer);
    write_run_state(writer, state_, optimizer_);
    return writer.finish(where_);
  }

  Task& task_;
  RunOptions options_;
  Where where_;
  optim::AdamW optimizer_;
  std::optional<data::Prefetcher> loader_;
  std::optional<MetricsLog> metrics_;
  RunState state_;
  std::vector<Tensor> losses_, correct_;  ///< of micro-batches, on the device until somebody reads them
  double progress_items_ = 0;
};

}  // namespace

RunResult run(Task& task, RunOptions options, const MetricFields& header, Where where) {
  return Run(task, std::move(options), header, where).finish();
}

}  // namespace cinta::train
