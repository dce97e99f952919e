// `cinta tune`: trains again and again with other values of some options, and says which were best.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cinta/data/directory_lock.h"
#include "cinta/train/run_files.h"
#include "cinta/train/stop_signals.h"
#include "tools/commands.h"
#include "tools/settings.h"
#include "tools/settings_file.h"
#include "tools/train_options.h"
#include "tools/tune_optuna.h"
#include "tools/tune_run.h"
#include "tools/tune_search.h"

namespace cinta::tools {
namespace {

using nlohmann::json;

void refuse_unused(const CLI::App& command, const TuneOptions& options) {
  const bool optuna = options.sampler == "tpe" || options.pruner != "none";
  const std::string sampler = "with --sampler " + options.sampler, pruner = "with --pruner " + options.pruner;
  require_effect(command, "grid_points", options.sampler == "grid", sampler);
  require_effect(command, "pruner_warmup", options.pruner != "none", pruner);
  for (const char* name : {"storage", "python"}) require_effect(command, name, optuna, sampler + ", " + pruner);
}

void tune(TuneOptions options, CLI::App& app) {
  std::ranges::transform(options.command, options.command.begin(), as_given);
  const Space space = read_space(options.space);
  if (!options.objective.starts_with("eval_")) options.objective = "eval_" + options.objective;
  if (options.direction.empty()) options.direction = options.objective.ends_with("loss") ? "minimize" : "maximize";
  check_command(options, space, app);
  std::optional<Grid> grid;
  if (options.sampler == "grid") grid.emplace(space, options.grid_points, options.seed);
  constexpr int64_t usual_trials = 20;
  int64_t count = options.trials > 0 ? options.trials : grid ? grid->size() : usual_trials;
  if (grid) count = std::min(count, grid->size());

  train::stop_on_signals();
  train::make_directory(options.directory);
  constexpr std::chrono::seconds patience{10};  // a trial whose search was killed needs a moment to save
  const data::DirectoryLock lock(options.directory, patience, /*inherited=*/true);
  open_search(options, space);
  Trials trials(options.directory, space, options.direction == "maximize");
  std::unique_ptr<Optuna> optuna;
  if (options.sampler == "tpe" || options.pruner != "none")
    optuna = std::make_unique<Optuna>(
        OptunaOptions{.python = options.python,
                      .sampler = options.sampler == "tpe" ? "tpe" : "",
                      .pruner = options.pruner,
                      .storage = options.storage,
                      .study = std::filesystem::absolute(options.directory).lexically_normal().filename(),
                      .maximize = options.direction == "maximize",
                      .seed = options.seed,
                      .warmup = options.pruner_warmup,
                      .error_file = options.directory + "/optuna.log"},
        space, trials.all());
  Verdict verdict;
  if (options.pruner != "none")
    verdict = [&](int64_t evaluation, double value) { return optuna->prune(evaluation, value); };
  const TrialCommand command{options.command, options.directory, options.objective};
  for (int64_t number = 0; number < count && !train::stop_signal(); ++number) {
    if (trials.has(number)) continue;
    json params = params_begun(options.directory, number);
    require<FileError>(params.is_null() || fits(space, params), "tune", Where(), options.directory, "/",
                       trial_name(number), "/trial.json: is of no trial of this search: ", params.dump());
    if (params.is_null() && grid) params = grid->values(number);
    if (params.is_null() && options.sampler == "random") params = random_values(space, options.seed, number);
    if (optuna) params = optuna->ask(number, params);
    const std::optional<Trial> trial = run_trial(command, number, params, verdict);
    if (!trial) break;
    trials.append(*trial);
    if (optuna) optuna->tell(*trial);
    plot_trials(options.directory, trials, options.objective, space);
    print_trial(options, *trial, trials);
  }
  if (const int signal = train::stop_signal()) {
    std::fprintf(stderr, "stopped after %zu trials; the same command goes on\n", trials.all().size());
    exit_code = 128 + signal;
    return;
  }
  print_search(options, trials);
}

}  // namespace

void add_tune(CLI::App& app) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command =
      app.add_subcommand("tune", "search for the options that train best: cinta tune --space FILE -- train mlp ...");
  command->add_option("--space", options->space, "JSON file of Optuna's distributions by option name")->required();
  command->add_option("--output_dir", options->directory, "directory of the search; goes on with one that is there")
      ->capture_default_str();
  command->add_option("--trials", options->trials, "0: the whole grid, or 20")
      ->capture_default_str()
      ->check(at_least(0));
  command->add_option("--sampler", options->sampler, "tpe (needs Python with Optuna), random, grid")
      ->capture_default_str()
      ->check(CLI::IsMember({"tpe", "random", "grid"}));
  command->add_option("--grid_points", options->grid_points, "values of each number that has more")
      ->capture_default_str()
      ->check(at_least(2));
  command->add_option("--pruner", options->pruner, "none; median, asha (need Python with Optuna)")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "median", "asha"}));
  command->add_option("--pruner_warmup", options->pruner_warmup, "evaluations before a trial may be given up")
      ->capture_default_str()
      ->check(at_least(1));
  command->add_option("--objective", options->objective, "number of the evaluation")->capture_default_str();
  command->add_option("--direction", options->direction, "maximize, minimize; unless given: the latter for a loss")
      ->check(CLI::IsMember({"maximize", "minimize"}));
  command->add_option("--seed", options->seed, "of the choice of values")->capture_default_str();
  command->add_option("--storage", options->storage,
                      "Optuna's, for its dashboards, such as sqlite:///search.db; unless given: in memory");
  command->add_option("--python", options->python, "that has Optuna")->capture_default_str();
  command->add_flag("--json", options->as_json, "one object");
  command->add_flag("--quiet", options->quiet, "no line for each trial");
  command->add_option("command", options->command, "behind --: the training that all trials share");
  set_work(*command, [options, &app, command] {
    refuse_unused(*command, *options);
    tune(*options, app);
  });
}

}  // namespace cinta::tools
