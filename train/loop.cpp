// One step is: clear gradients, forward and backward each micro-batch, update. The rest is bookkeeping around it.
#include "cinta/train/loop.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "cinta/autograd/anomaly.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/context.h"
#include "cinta/data/directory_lock.h"
#include "cinta/optim/accumulation.h"
#include "cinta/train/bad_loss.h"
#include "cinta/train/callbacks.h"
#include "cinta/train/checkpoint_directory.h"
#include "cinta/train/checkpoint_names.h"
#include "cinta/train/precision.h"
#include "cinta/train/progress.h"
#include "cinta/train/run_files.h"
#include "cinta/train/timing.h"

namespace cinta::train {
namespace {

class Run {
 public:
  Run(Task& task, RunOptions options, const MetricFields& header, Where where)
      : task_(task),
        options_(std::move(options)),
        where_(where),
        optimizer_(task.model().parameters(), options_.optimizer, where),
        scaler_(optimizer_, options_.loss_scale, where) {
    if (options_.schedule.total == 0) options_.schedule.total = options_.max_steps;
    optim::check(options_.schedule, where);
    require(options_.max_steps > 0 && options_.accumulation_steps > 0 && options_.logging_steps > 0, "train", where,
            "max_steps, gradient_accumulation_steps and logging_steps are positive");
    require(options_.eval_steps >= 0 && options_.save_steps >= 0 && options_.max_grad_norm >= 0 &&
                options_.overfit_batches >= 0,
            "train", where, "eval_steps, save_steps, max_grad_norm and overfit_batches are not negative");
    require(!options_.detect_anomaly || !options_.loss_scale.dynamic, "train", where,
            "detect_anomaly asks for a static loss scale: a dynamic one overflows to find its limit");
    if (options_.autocast && options_.autocast->products)  // what another run has learnt is not ours
      products_ = options_.autocast->products =
          std::make_shared<autograd::NarrowProducts>(options_.autocast->products->recipe(), where);
    source_ = &task.batches();
    options_.callbacks.insert(options_.callbacks.begin(), std::make_shared<Cadence>());
    call([](TrainerCallback& one, const Moment& now) { one.on_check(now); });
    if (!options_.output_dir.empty()) open_directory(header);
    if (options_.autocast && options_.autocast->low != Dtype::f32)
      optimizer_.keep_shadows(options_.autocast->low, where);
    if (options_.overfit_batches > 0) source_ = &repeated_.emplace(*source_, options_.overfit_batches);
    loader_.emplace(*source_, state_.batches);
  }

  RunResult finish() {
    progress_.emplace(ProgressOptions{.total_steps = options_.max_steps,
                                      .first_step = state_.step,
                                      .plain_every = 10 * options_.logging_steps,
                                      .items = task_.progress_unit(),
                                      .quiet = options_.quiet});
    std::optional<autograd::AnomalyScope> anomaly;
    if (options_.detect_anomaly) anomaly.emplace();
    const double start = seconds();
    call([](TrainerCallback& one, const Moment& now) { one.on_train_begin(now); });
    control_.evaluate |= state_.evaluation_due;
    control_.save |= state_.save_due;
    act();
    while (state_.step < options_.max_steps && !control_.stop && !stopped()) {
      if (begins_epoch()) call([](auto& one, const Moment& now) { one.on_epoch_begin(now); });
      call([](auto& one, const Moment& now) { one.on_step_begin(now); });
      norm_ = step();
      ++state_.step;
      call([](auto& one, const Moment& now) { one.on_step_end(now); });
      if (begins_epoch()) call([](auto& one, const Moment& now) { one.on_epoch_end(now); });
      act();
      if (state_.step % options_.loss_scale.most_skips == 0) scaler_.check(where_);
    }
    result_.seconds = seconds() - start;
    result_.items_per_second = result_.items / result_.seconds;
    result_.steps = state_.step;
    result_.skipped = scaler_.skipped();
    if (!stopped()) {
      if (norm_ && state_.items > 0) log();  // what a callback's stop has cut off
      last_evaluation();
    }
    if (stopped()) {
      result_.stopped_by = options_.stop.number();
      result_.evaluation.clear();
    }
    save();
    call([](auto& one, const Moment& now) { one.on_train_end(now); });
    return result_;
  }

 private:
  bool stopped() const { return options_.stop.number() != 0; }
  double epoch() const { return source_->epoch(state_.batches); }
  /// Whether the step before the first of an epoch is done; an epoch may begin within a step.
  bool begins_epoch() const {
    const int64_t before = state_.batches - options_.accumulation_steps;
    return before < 0 || std::floor(epoch()) > std::floor(source_->epoch(before));
  }
  /// Goes on with the first batch of the next epoch; false where this one has ended by itself.
  bool pass_over_epoch() {
    if (begins_epoch()) return false;
    const double last = std::floor(epoch());
    require(source_->epoch(state_.batches + 1) > epoch(), "train", where_,
            "batches that count their epochs, to pass over the rest of one");
    while (std::floor(epoch()) == last) ++state_.batches;
    loader_.emplace(*source_, state_.batches);
    call([](auto& one, const Moment& now) { one.on_epoch_end(now); });
    return true;
  }

  template <class Event>
  void call(Event event) {
    const Moment now{options_, task_, state_, result_, control_, epoch(), repeat_};
    for (const auto& callback : options_.callbacks) event(*callback, now);
  }

  /// Does what the callbacks asked for.
  void act() {
    do {
      if (norm_ && std::exchange(control_.log, false)) log();
      if (std::exchange(control_.evaluate, false)) evaluate();
    } while (std::exchange(control_.stop_epoch, false) && pass_over_epoch());
    if (std::exchange(control_.save, false) && !stopped()) save();
  }

  /// The forward of micro-batch `micro_batch` of a step, which is counted from 0.
  Forward forward(const data::Batch& batch, int64_t step, int64_t micro_batch) {
    if (Random* random = task_.random()) {
      // Numbers of samples keep what micro-batches draw apart where all samples are equally long; else steps do.
      const bool packed = task_.packs_samples();
      random->set_step(packed ? step * options_.accumulation_steps + micro_batch : step);
      random->set_first_sample(packed ? 0 : micro_batch * task_.samples_per_batch());
    }
    const autograd::AutocastScope types(options_.autocast, where_);
    return task_.forward(batch);
  }

  /// The gradients of a step that has these micro-batches; after the backward of each, `then` is called with its number
  /// and what its forward returned.
  template <class Then>
  void gradients(const std::vector<data::Batch>& window, int64_t step, Then then) {
    std::vector<int64_t> items;
    for (const data::Batch& batch : window) items.push_back(batch.items);
    const Device device = optimizer_.units().front().groups().front().weights.device();
    const Tensor seed = scaler_.scaled(optim::accumulation_seed(items, Dtype::f32, device));
    optimizer_.zero_gradients();
    for (size_t i = 0; i < window.size(); ++i) {
      const auto number = static_cast<int64_t>(i);
      const Forward done = forward(window[i], step, number);
      autograd::backward(done.loss_sum, {.seeds = {seed}});
      then(number, done);
    }
  }

  /// What Moment::repeat_step promises.
  void repeat_step() {
    require(first_batch_ >= 0, "train", where_, "a step is repeated after the first that this process does");
    std::vector<data::Batch> window;
    for (int64_t i = 0; i < options_.accumulation_steps; ++i) window.push_back(source_->batch(first_batch_ + i));
    gradients(window, state_.step - 1, [](int64_t, const Forward&) {});
  }

  /// One update of the weights; returns the gradient norm.
  Tensor step() {
    std::vector<data::Batch> window;
    for (int64_t i = 0; i < options_.accumulation_steps; ++i) {
      window.push_back(loader_->next());
      state_.items += window.back().items;
      result_.items += static_cast<double>(task_.progress_items(window.back()));
    }
    first_batch_ = state_.batches;
    gradients(window, state_.step, [&](int64_t number, const Forward& done) {
      call([](auto& one, const Moment& now) { one.on_substep_end(now); });
      unread_.push_back({.step = state_.step,
                         .micro_batch = number,
                         .batch = state_.batches++,
                         .items = window[static_cast<size_t>(number)].items,
                         .loss = detach(done.loss_sum),
                         .correct = done.correct});
    });
    call([](auto& one, const Moment& now) { one.on_pre_optimizer_step(now); });
    const Tensor norm = optimizer_.step({.rate_factor = optim::rate_factor(options_.schedule, state_.step),
                                         .max_norm = options_.max_grad_norm,
                                         .loss_scale = scaler_.scale()},
                                        where_);
    if (options_.loss_scale.dynamic) note_factor();
    scaler_.update();
    if (products_) products_->update(optimizer_.gradient_factor(), where_);
    if (unread_.size() >= most_unread) read_sums();
    return norm;
  }

  /// The micro-batches of this step hear whether it was skipped, on the device still.
  void note_factor() {
    const Tensor live = optimizer_.gradient_factor(), factor = empty(live.shape(), live.dtype(), live.device());
    copy_bytes(factor, live);
    for (auto one = unread_.rbegin(); one != unread_.rend() && one->step == state_.step; ++one) one->factor = factor;
  }

  /// Adds up what the micro-batches left; the first place where a loss that is no number is seen. Where the scale is
  /// dynamic, a step that overflowed before its gradients did was skipped like others, and counts for nothing.
  void read_sums() {
    for (const Unread& one : unread_) {
      const double sum = item(one.loss);
      if (!std::isfinite(sum) && one.factor && item(one.factor) == 0) {
        state_.items -= one.items;
        continue;
      }
      if (!std::isfinite(sum))
        report_bad_loss(
            sum, one.step + 1, [&] { return forward(source_->batch(one.batch), one.step, one.micro_batch); }, where_);
      state_.loss_sum += sum;
      state_.correct_sum += item(one.correct);
    }
    unread_.clear();
  }

  void log() {
    read_sums();
    const double items = state_.items > 0 ? static_cast<double>(state_.items) : NAN;
    result_.loss = state_.loss_sum / items;
    const double accuracy = state_.correct_sum / items;
    const double rate = optimizer_.rate() * optim::rate_factor(options_.schedule, state_.step - 1);
    MetricFields fields{{"loss", result_.loss},
                        {task_.accuracy_name(), accuracy},
                        {"grad_norm", item(norm_)},
                        {"learning_rate", rate},
                        {"epoch", epoch()}};
    const optim::LossScaler::Report scaling = scaler_.report(where_);
    if (scaling.scale != 1) fields.emplace_back("loss_scale", scaling.scale);
    if (scaling.skipped > 0) fields.emplace_back("skipped_steps", scaling.skipped);
    if (!scaling.skipped_in.empty()) fields.emplace_back("skipped_in", scaling.skipped_in);
    if (products_) add_counts(fields, products_->take_counts());
    write(fields);
    const std::vector<Shown> shown{{"loss", result_.loss}, {task_.accuracy_name(), accuracy}};
    progress_->update(state_.step, shown, result_.items);
    state_.loss_sum = state_.correct_sum = 0;
    state_.items = 0;
    call([&](auto& one, const Moment& now) { one.on_log(now, fields); });
  }

  /// Evaluates; a resumed run finds its line in the metrics already, and its callbacks have heard of it. What a signal
  /// breaks off is due then.
  MetricFields evaluate() {
    const MetricFields fields = [this] {
      const autograd::AutocastScope types(options_.autocast, where_);
      return task_.evaluate_until(options_.stop);
    }();
    const bool known = state_.evaluated_step == state_.step;
    state_.evaluation_due = fields.empty() && !known;
    state_.save_due = state_.evaluation_due && control_.save;
    if (fields.empty() || known) return fields;
    MetricFields line = fields;
    line.emplace_back("epoch", epoch());
    write(line);
    state_.evaluated_step = state_.step;
    call([&](auto& one, const Moment& now) { one.on_evaluate(now, line); });
    return fields;
  }

  /// An evaluation that fails does not take the training with it.
  void last_evaluation() {
    try {
      result_.evaluation = evaluate();
    } catch (...) {
      save();
      throw;
    }
  }

  void write(const MetricFields& fields) {
    if (metrics_) metrics_->append(state_.step, fields, where_);
  }

  /// Says which checkpoints are passed over. A run whose every checkpoint is damaged is not begun anew over them.
  void report_skipped(const CheckpointSearch& search) {
    if (!options_.quiet)
      for (const std::string& fault : search.unfinished) std::fprintf(stderr, "skipped %s\n", fault.c_str());
    require<FileError>(search.newest || options_.overwrite || search.lost.empty(), "resume", where_,
                       options_.output_dir, " has no whole checkpoint; --overwrite starts anew: ", search.lost);
    // The quiet hear of it, too: the run goes on from less than it had saved.
    for (const std::string& fault : search.skipped) std::fprintf(stderr, "skipped %s\n", fault.c_str());
  }

  void open_directory(const MetricFields& header) {
    const std::string metrics = options_.output_dir + "/" + metrics_name;
    if (std::filesystem::is_directory(options_.output_dir))
      lock_.emplace(options_.output_dir, std::chrono::milliseconds(), false, where_);
    const CheckpointSearch search = newest_checkpoint(options_.output_dir, where_);
    if (options_.resume) report_skipped(search);
    if (options_.resume && search.newest) {
      require_header(metrics, header, where_);  // first: nothing that the run has saved fits another one
      task_.load(search.newest->path);
      state_ = read_run_state(search.newest->path, optimizer_, scaler_, products_.get(), where_);
      require(options_.max_steps >= state_.step, "resume", where_, "the run has done ", state_.step,
              " steps already, max_steps is ", options_.max_steps);
      metrics_ = MetricsLog::resume(metrics, header, state_.step, state_.evaluation_due, where_);
      return;
    }
    // A run without a checkpoint yet is begun anew. Weights, and checkpoints that are not whole, are not begun anew
    // over.
    const bool is_run = holds_run(options_.output_dir), begun = !options_.resume && has_steps(metrics, where_),
               kept = std::filesystem::exists(options_.output_dir + "/model.safetensors") ||
                      (is_run && (search.newest || holds_checkpoint(options_.output_dir, where_)));
    require(options_.overwrite || !(begun || kept), "train", where_, options_.output_dir, " already holds ",
            kept && !search.newest ? "weights or checkpoints; " : "a run; --resume goes on with it, ",
            "--overwrite starts anew");
    const std::string other = is_run || options_.overwrite ? "" : name_of_run_file(options_.output_dir, where_);
    require<FileError>(other.empty(), "train", where_, options_.output_dir, " holds no run, but ", other,
                       ", which a run would write; take another directory, or --overwrite");
    make_directory(options_.output_dir, where_);
    if (!lock_) lock_.emplace(options_.output_dir, std::chrono::milliseconds(), false, where_);
    if (options_.overwrite && is_run)
      remove_run(options_.output_dir, where_);
    else
      remove_checkpoints(options_.output_dir, where_);
    metrics_ = MetricsLog::create(metrics, header, where_);
  }

  void save() {
    if (options_.output_dir.empty()) return;
    read_sums();
    require_finite_weights(optimizer_, state_.step, where_);
    metrics_->sync();
    CheckpointWriter writer(options_.output_dir, state_.step, where_);
    task_.save(writer);
    write_run_state(writer, state_, epoch(), optimizer_, scaler_, products_.get());
    result_.checkpoint = writer.finish(where_);
    call([&](auto& one, const Moment& now) { one.on_save(now, result_.checkpoint); });
  }

  /// What a micro-batch left on the device, until a line of the log reads it, or the step that leaves the 256th.
  struct Unread {
    int64_t step, micro_batch, batch, items;
    Tensor loss, correct;
    Tensor factor = {};  ///< of the gradients; 0: the step was skipped. Absent where it need not be known
  };
  static constexpr size_t most_unread = 256;

  Task& task_;
  RunOptions options_;
  Where where_;
  optim::AdamW optimizer_;
  optim::LossScaler scaler_;
  std::shared_ptr<autograd::NarrowProducts> products_;  ///< null but in fp8
  const data::BatchSource* source_;
  std::optional<data::RepeatedBatches> repeated_;
  std::optional<data::Prefetcher> loader_;
  std::optional<data::DirectoryLock> lock_;  ///< two runs would write over each other
  std::optional<MetricsLog> metrics_;
  RunState state_;
  RunResult result_;
  Control control_;
  std::optional<Progress> progress_;
  Tensor norm_;  ///< of the last step's gradient
  std::vector<Unread> unread_;
  int64_t first_batch_ = -1;  ///< of the last step that this process did
  const Callback<void()> repeat_ = [this] { repeat_step(); };
};

}  // namespace

RunOptions fast_dev_run(RunOptions options, int64_t steps) {
  options.max_steps = steps;
  options.logging_steps = 1;
  options.schedule.warmup = std::min(options.schedule.warmup, steps / 10);
  options.output_dir.clear();
  return options;
}

RunResult run(Task& task, RunOptions options, const MetricFields& header, Where where) {
  return Run(task, std::move(options), header, where).finish();
}

}  // namespace cinta::train
