// Optuna, asked through a small Python program that is shipped (tune_optuna.py): it chooses values and tells which
// trials to give up.
#pragma once
#include "tools/process.h"
#include "tools/tune_space.h"
#include "tools/tune_trials.h"

namespace cinta::tools {

struct OptunaOptions {
  std::string python = "python3";
  std::string sampler, pruner;  ///< tpe, or nothing where values are given; none, median, asha
  std::string storage;          ///< Optuna's URL, such as sqlite:///search.db; empty: in memory
  std::string study;
  bool maximize = false;
  uint64_t seed = 0;
  int64_t warmup = 1;      ///< evaluations before a trial may be given up
  std::string error_file;  ///< what Python says goes there
};

class Optuna {
 public:
  /// Starts Python and tells it of the trials that are over. Throws ValueError saying what to install where Optuna
  /// cannot be had.
  Optuna(const OptunaOptions& options, const Space& space, const std::vector<Trial>& finished);
  ~Optuna();
  Optuna(const Optuna&) = delete;
  Optuna& operator=(const Optuna&) = delete;

  /// Begins a trial; returns its values, which are `given` unless that is null.
  nlohmann::json ask(int64_t number, const nlohmann::json& given);
  /// Whether to give up the trial that was begun last, now that its evaluation number `evaluation`, counted from 1,
  /// found `value`.
  bool prune(int64_t evaluation, double value);
  void tell(const Trial& trial);

 private:
  nlohmann::json call(const nlohmann::json& request);

  OptunaOptions options_;
  int socket_ = -1;
  std::string unread_;
  std::optional<Process> process_;
};

}  // namespace cinta::tools
