// One trial: a training of its own, watched while it runs.
#pragma once
#include <functional>

#include "tools/settings.h"
#include "tools/tune_trials.h"

namespace cinta::tools {

struct TrialCommand {
  Arguments words;        ///< `train mlp --data ...`, what all trials share
  std::string directory;  ///< of the search
  std::string objective;  ///< eval_accuracy
};

/// Whether to give the trial up: called with each evaluation's number, counted from 1, and the objective's value.
/// Empty: all trials are trained to their end.
using Verdict = std::function<bool(int64_t, double)>;

/// Trains with `params` in trial-NNNN of the search's directory, or goes on with what stands there. Returns nothing
/// when train::stop_signal() came: the trial has been told, has saved and ended. Throws FileError where files of the
/// trial say what no training writes.
std::optional<Trial> run_trial(const TrialCommand& command, int64_t number, const nlohmann::json& params,
                               const Verdict& verdict);

/// The values that an unfinished trial was begun with; null where none was.
nlohmann::json params_begun(const std::string& directory, int64_t number);

}  // namespace cinta::tools
