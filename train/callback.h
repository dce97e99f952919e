// Callbacks: what is done around training steps without a line in the loop. The events are those that users of the HF
// Trainer know, and one before the optimizer's step.
#pragma once
#include "cinta/core/callback.h"
#include "cinta/train/run_state.h"
#include "cinta/train/task.h"

namespace cinta::train {

struct RunOptions;
struct RunResult;

/// What a callback asks of the loop. Log, evaluate, the end of an epoch, which passes over the batches that are left of
/// it, and save are done after the step's events, in this order, and are cleared then; stop ends the run, which
/// evaluates and saves a last time.
struct Control {
  bool stop_epoch = false, log = false, evaluate = false, save = false, stop = false;
};

/// The run as a callback sees it.
struct Moment {
  const RunOptions& options;
  Task& task;
  RunState& state;  ///< `numbers` are kept in checkpoints: a resumed run goes on with them
  RunResult& result;
  Control& control;
  double epoch;  ///< passes over the data so far
  /// Does the forwards and backwards of the last step again, with the weights as they are now: the gradients become
  /// those, nothing else changes. For on_train_end, when it is known which step was the last. Throws ValueError where
  /// this process has done no step.
  const Callback<void()>& repeat_step;
};

class TrainerCallback {
 public:
  virtual ~TrainerCallback() = default;
  /// Before a directory is looked at: throws what can be said of the options alone. Leaves nothing.
  virtual void on_check(const Moment&) {}
  virtual void on_train_begin(const Moment&) {}
  virtual void on_epoch_begin(const Moment&) {}
  virtual void on_step_begin(const Moment&) {}
  /// After each micro-batch's backward, and before the optimizer's step, with all gradients in place: those of the loss
  /// times the loss scale, where there is one.
  virtual void on_substep_end(const Moment&) {}
  virtual void on_pre_optimizer_step(const Moment&) {}
  /// `state.step` counts the step that has ended.
  virtual void on_step_end(const Moment&) {}
  virtual void on_epoch_end(const Moment&) {}
  virtual void on_log(const Moment&, const MetricFields&) {}
  virtual void on_evaluate(const Moment&, const MetricFields&) {}
  /// After a checkpoint stands in its place.
  virtual void on_save(const Moment&, const std::string& /*path*/) {}
  virtual void on_train_end(const Moment&) {}
};

}  // namespace cinta::train
