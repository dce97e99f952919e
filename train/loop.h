// The training loop: steps, numbers, checkpoints, stopping and resuming. A run of N steps gives the same bits whether
// or not it was interrupted, because everything random is a function of the step.
#pragma once
#include <memory>

#include "cinta/autograd/autocast.h"
#include "cinta/optim/adamw.h"
#include "cinta/optim/loss_scale.h"
#include "cinta/optim/schedule.h"
#include "cinta/train/callback.h"
#include "cinta/train/task.h"

namespace cinta::train {

struct RunOptions {
  std::string output_dir = {};  ///< empty: nothing is written
  int64_t max_steps = 1000;
  int64_t accumulation_steps = 1;  ///< micro-batches of one optimizer step
  optim::AdamWOptions optimizer = {};
  optim::Schedule schedule = {};  ///< total 0: max_steps
  double max_grad_norm = 1.0;     ///< 0: no clipping
  /// The types that models compute in; weights, gradients of weights and the update stay f32.
  std::optional<autograd::Autocast> autocast = {};
  optim::LossScaleOptions loss_scale = {};
  int64_t logging_steps = 10;
  bool logging_first_step = false;
  int64_t eval_steps = 0;        ///< 0: at the end only
  int64_t save_steps = 0;        ///< 0: at the end and when stopped
  bool eval_each_epoch = false;  ///< after the step in which an epoch ends
  bool save_each_epoch = false;
  int64_t overfit_batches = 0;  ///< train on this many batches again and again; 0: on all
  bool resume = false;          ///< go on from the newest whole checkpoint of output_dir
  bool overwrite = false;       ///< start anew where a run already lies
  bool detect_anomaly = false;  ///< find the op that makes the first NaN
  bool quiet = false;
  /// Set to a signal's number: finish the step, save, return (train/stop_signals.h has the handler for it).
  StopFlag stop = {};
  std::vector<std::shared_ptr<TrainerCallback>> callbacks = {};  ///< called in this order (train/callbacks.h)
};

struct RunResult {
  int64_t steps = 0;
  double loss = 0;  ///< mean over the last logging interval
  double seconds = 0;
  double items = 0;  ///< that this process has trained on, as Task::progress_items counts them
  double items_per_second = 0;
  MetricFields evaluation;  ///< of the last step; empty when a signal stopped the run
  std::string checkpoint;   ///< the one written last, or the best where that was loaded; empty without output_dir
  int64_t skipped = 0;      ///< steps, of all since the run began, whose gradients were not finite
  int stopped_by = 0;       ///< the signal, or 0
  bool pruned = false;      ///< a search gave it up (train/trial.h)
};

/// The run that shows in `steps` steps whether all of `options` works: each step is logged, nothing is written.
RunOptions fast_dev_run(RunOptions options, int64_t steps = 1);

/// Trains until max_steps. Writes metrics.jsonl and checkpoint-N/ into output_dir. `header` describes the run in the
/// first line of metrics.jsonl. Throws ValueError when the loss becomes NaN (the last checkpoint is kept), FileError.
RunResult run(Task& task, RunOptions options, const MetricFields& header, Where where = Where::current());

}  // namespace cinta::train
