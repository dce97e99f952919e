// One step is: clear gradients, forward and backward each micro-batch, update. The rest is bookkeeping around it.
#include "cinta/train/loop.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>

#include "cinta/autograd/anomaly.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/context.h"
#include "cinta/optim/accumulation.h"
#include "cinta/train/checkpoint_directory.h"
#include "cinta/train/progress.h"
#include "cinta/train/run_state.h"

namespace cinta::train {
namespace {

using Clock = std::chrono::steady_clock;

/// Numbers that wait on the device until somebody logs them.
struct Interval {
  std::vector<Tensor> losses, correct;
  double loss_sum = 0, correct_sum = 0;
  int64_t items = 0;

  void read() {
    for (const Tensor& loss : losses) loss_sum += item(loss);
    for (const Tensor& count : correct) correct_sum += item(count);
    losses.clear();
    correct.clear();
  }
};

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
    if (!options_.output_dir.empty()) open_directory(header);
    loader_.emplace(task.batches(), step_ * options_.accumulation_steps);
  }

  RunResult finish() {
    Progress progress({.total_steps = options_.max_steps,
                       .first_step = step_,
                       .plain_every = 10 * options_.logging_steps,
                       .items = task_.progress_unit(),
                       .quiet = options_.quiet});
    std::optional<autograd::AnomalyScope> anomaly;
    if (options_.detect_anomaly) anomaly.emplace();
    const Clock::time_point start = Clock::now();
    RunResult result;
    while (step_ < options_.max_steps && !stopped()) {
      const Tensor norm = step();
      ++step_;
      if (step_ % options_.logging_steps == 0 || step_ == options_.max_steps) log(norm, result, progress);
      const bool last = step_ == options_.max_steps;
      if (options_.eval_steps && step_ % options_.eval_steps == 0 && !last) write(step_, task_.evaluate());
      if (options_.save_steps && step_ % options_.save_steps == 0 && !last && !stopped()) save();
    }
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    result.items_per_second = progress_items_ / result.seconds;
    result.steps = step_;
    if (stopped()) {
      result.stopped_by = static_cast<int>(*options_.stop);
    } else {
      result.evaluation = task_.evaluate();
      write(step_, result.evaluation);
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
      interval_.items += window.back().items;
      progress_items_ += static_cast<double>(task_.progress_items(window.back()));
    }
    const Device device = optimizer_.units().front().groups().front().weights.device();
    const Tensor seed = optim::accumulation_seed(items, Dtype::f32, device);
    optimizer_.zero_gradients();
    if (Random* random = task_.random()) random->set_step(step_);
    for (int64_t i = 0; i < micro_batches; ++i) {
      if (Random* random = task_.random()) random->set_first_sample(i * task_.samples_per_batch());
      const Forward forward = task_.forward(window[static_cast<size_t>(i)]);
      autograd::backward(forward.loss_sum, {.seeds = {seed}});
      interval_.losses.push_back(detach(forward.loss_sum));
      interval_.correct.push_back(forward.correct);
    }
    return optimizer_.step(
        {.rate_factor = optim::rate_factor(options_.schedule, step_), .max_norm = options_.max_grad_norm}, where_);
  }

  void log(const Tensor& norm, RunResult& result, Progress& progress) {
    interval_.read();
    const double items = static_cast<double>(std::max<int64_t>(1, interval_.items));
    result.loss = interval_.loss_sum / items;
    require(std::isfinite(result.loss), "train", where_, "the loss is ", result.loss, " at step ", step_,
            "; --detect_anomaly finds the op that made it");
    const double accuracy = interval_.correct_sum / items;
    const double rate = optimizer_.rate() * optim::rate_factor(options_.schedule, step_ - 1);
    write(
        step_,
        {{"loss", result.loss}, {task_.accuracy_name(), accuracy}, {"grad_norm", item(norm)}, {"learning_rate", rate}});
    const std::vector<Shown> shown{{"loss", result.loss}, {task_.accuracy_name(), accuracy}};
    progress.update(step_, shown, progress_items_);
    interval_ = {};
  }

  void write(int64_t step, const MetricFields& fields) {
    if (metrics_) metrics_->append(step, fields, where_);
  }

  void open_directory(const MetricFields& header) {
    const std::string metrics = options_.output_dir + "/metrics.jsonl";
    const CheckpointSearch search = newest_checkpoint(options_.output_dir, where_);
    if (options_.resume && search.newest) {
      task_.load(search.newest->path);
      const RunState state = read_run_state(search.newest->path, optimizer_, where_);
      step_ = state.step;
      interval_.loss_sum = state.loss_sum;
      interval_.correct_sum = state.correct_sum;
      interval_.items = state.items;
      metrics_ = MetricsLog::resume(metrics, step_, where_);
      return;
    }
    require(options_.overwrite || options_.resume || !(search.newest || std::filesystem::exists(metrics)), "train",
            where_, options_.output_dir, " already holds a run; --resume goes on with it, --overwrite starts anew");
    make_directory(options_.output_dir, where_);
    remove_checkpoints(options_.output_dir, where_);
    metrics_ = MetricsLog::create(metrics, header, where_);
  }

  /// Writes a checkpoint and returns its directory.
  std::string save() {
    if (options_.output_dir.empty()) return {};
    interval_.read();
    metrics_->sync();
    CheckpointWriter writer(options_.output_dir, step_, where_);
    task_.save(writer);
    write_run_state(writer, {step_, interval_.loss_sum, interval_.correct_sum, interval_.items}, optimizer_);
    return writer.finish(where_);
  }

  Task& task_;
  RunOptions options_;
  Where where_;
  optim::AdamW optimizer_;
  std::optional<data::Prefetcher> loader_;
  std::optional<MetricsLog> metrics_;
  Interval interval_;
  int64_t step_ = 0;
  double progress_items_ = 0;
};

}  // namespace

RunResult run(Task& task, RunOptions options, const MetricFields& header, Where where) {
  return Run(task, std::move(options), header, where).finish();
}

}  // namespace cinta::train
