// A run as one trial of a search. The contract, which cinta tune keeps and any other program may:
//
//   cinta train ... --params trial.json --result result.json --output_dir DIR [--await_verdict]
//
// trial.json is a flat object of option names: the values that were chosen. While the run goes on, DIR/metrics.jsonl
// gets a line with each evaluation. Who puts the file DIR/verdict there with the text `prune STEP` has the run give up
// at that step, or at once where it is past: it evaluates, saves and ends with exit code 3. With --await_verdict the
// run waits after each evaluation on the way until the file says `go_on STEP` or `prune STEP` of that step or a later
// one, so that what is given up, and when, does not depend on how busy the machine is. The file is gone when the run
// ends. result.json is there, whole, at the end: {"state": "complete", "pruned" or "stopped" (by a signal), "steps",
// "skipped_steps": of them those whose gradients were not finite, "epoch", "seconds", "evaluation": {..}, "value": the
// metric for the best model, or null, "peak_bytes": of tensors, by what they are for}. A run that fails, with exit code
// 1 or 2, leaves none.
#pragma once
#include "cinta/train/callbacks.h"

namespace cinta::train {

/// In the run's directory.
inline constexpr const char* verdict_file = "verdict";
inline constexpr const char* verdict_go_on = "go_on";
inline constexpr const char* verdict_prune = "prune";
inline constexpr int pruned_exit_code = 3;

/// Obeys the verdict and writes the result. Stands last among the callbacks, so that the evaluation is what they left
/// of it.
class TrialReport final : public TrainerCallback {
 public:
  struct Options {
    std::string result_path;
    WatchedMetric objective = {};
    bool await_verdict = false;
  };
  /// Throws where the result could not be written in the end.
  explicit TrialReport(Options options);
  void on_check(const Moment& now) override;
  /// Takes an older result away.
  void on_train_begin(const Moment& now) override;
  void on_step_end(const Moment& now) override;
  void on_evaluate(const Moment& now, const MetricFields& fields) override;
  void on_train_end(const Moment& now) override;

 private:
  /// Gives the run up where that is wanted; whether there is a verdict on its step.
  bool obey(const Moment& now) const;
  /// Returns once there is one, where one is to be waited for, or once a signal came.
  void await(const Moment& now) const;

  Options options_;
  std::string verdict_path_;
};

}  // namespace cinta::train
