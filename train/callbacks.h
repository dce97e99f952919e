// The callbacks that come with the trainer: when to log, evaluate and save; the best checkpoint; stopping early.
#pragma once
#include <initializer_list>
#include <optional>

#include "cinta/train/callback.h"

namespace cinta::train {

/// Asks for logs, evaluations and checkpoints as the run's options say. Every run has it.
class Cadence final : public TrainerCallback {
 public:
  void on_step_end(const Moment& now) override;
  void on_epoch_end(const Moment& now) override;
};

/// A number of an evaluation that is to become small, or large.
struct WatchedMetric {
  std::string name = "eval_loss";
  bool greater_is_better = false;
  /// Whether `value` is better than `best` by more than `min_delta`. NaN as `best` stands for none yet; as `value` it
  /// is never better.
  bool better(double value, double best, double min_delta = 0) const;
  /// Its value; throws ValueError naming what there is when it is not among `fields`.
  double in(const MetricFields& fields) const;
  /// Throws ValueError where the numbers `kept` are of a run that has watched another one so far; `key` keeps which.
  void begin(const Moment& now, const char* key, std::initializer_list<const char*> kept) const;
  /// Throws the same where `task` says what it evaluates and the number is not among it.
  void check(const Task& task) const;
};

/// Has a checkpoint written of the best evaluation so far, which the link `best` in the run's directory names; `last`
/// names the newest. Keeps at most `save_total_limit` checkpoints (0: all), never removing those two.
class BestCheckpoint final : public TrainerCallback {
 public:
  struct Options {
    WatchedMetric metric = {};
    int64_t save_total_limit = 0;
    bool save_best = true;  ///< false: the best of those that are saved anyway
    bool load_at_end =
        false;  ///< the task ends with the best weights; the result's checkpoint and evaluation are theirs
  };
  explicit BestCheckpoint(Options options) : options_(std::move(options)) {}
  void on_check(const Moment& now) override;
  void on_train_begin(const Moment& now) override;
  void on_evaluate(const Moment& now, const MetricFields& fields) override;
  void on_save(const Moment& now, const std::string& path) override;
  void on_train_end(const Moment& now) override;

 private:
  Options options_;
};

/// The best evaluation of a run so far, of which a checkpoint was written.
struct BestEvaluation {
  double value;
  int64_t step;
};
/// What BestCheckpoint has kept of it; nothing where there is none.
std::optional<BestEvaluation> best_evaluation(const RunState& state);

/// Stops after `patience` evaluations in a row without one better by more than `min_delta`.
class EarlyStopping final : public TrainerCallback {
 public:
  struct Options {
    WatchedMetric metric = {};
    int64_t patience = 3;
    double min_delta = 0;
  };
  explicit EarlyStopping(Options options, Where where = Where::current());
  void on_check(const Moment& now) override;
  void on_train_begin(const Moment& now) override;
  void on_evaluate(const Moment& now, const MetricFields& fields) override;

 private:
  Options options_;
};

}  // namespace cinta::train
