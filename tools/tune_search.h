// A search as a whole: its options, its directory, what it prints.
#pragma once
#include "tools/settings.h"
#include "tools/tune_space.h"
#include "tools/tune_trials.h"

namespace cinta::tools {

/// The options of `cinta tune`.
struct TuneOptions {
  std::string space, directory = "runs/search", sampler = "tpe", pruner = "none", objective = "eval_loss", direction,
                     storage, python = "python3";
  int64_t trials = 0, grid_points = 4, pruner_warmup = 1;
  uint64_t seed = 0;
  bool as_json = false, quiet = false;
  Arguments command;
};

/// Checks the command behind `--` and that the space's parameters are options of it which it does not give itself.
/// Throws ValueError.
void check_command(const TuneOptions& options, const Space& space, CLI::App& app);

/// Writes down what is searched, in DIR/search.json. Where trials have begun there, compares it with what stands in
/// that file, and throws ValueError naming each difference. Throws FileError for a directory of trials or of a run, but
/// of no search.
void open_search(const TuneOptions& options, const Space& space);

/// A line about the trial that is over.
void print_trial(const TuneOptions& options, const Trial& trial, const Trials& trials);
/// What came of the search. Throws where every trial failed.
void print_search(const TuneOptions& options, const Trials& trials);

}  // namespace cinta::tools
