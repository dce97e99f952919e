// `cinta tune`: trains again and again with other values of some options, and says which were best.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

#include "cinta/data/file.h"
#include "cinta/data/strict_json.h"
#include "cinta/train/run_files.h"
#include "tools/commands.h"
#include "tools/train_options.h"
#include "tools/tune_optuna.h"
#include "tools/tune_run.h"

namespace cinta::tools {
namespace {

using nlohmann::json;

struct Options {
  std::string config, space, directory = "runs/search", sampler = "tpe", pruner = "none", objective = "eval_loss",
                             direction, storage, python = "python3";
  int64_t trials = 0, grid_points = 4, pruner_warmup = 1;
  uint64_t seed = 0;
  bool as_json = false, quiet = false;
  Arguments command;
};

/// The command behind `--`, as the parser would be given it: that all its options are there can be asked of it.
void check_command(const Options& options, const Space& space, CLI::App& app) {
  const CLI::App& command = *command_of(app, options.command);
  require(!options.command.empty() && options.command.front() == "train" && command.get_subcommands({}).empty(), "tune",
          Where(),
          "behind -- stands what all trials share, such as: cinta tune --space space.json -- train mlp --data ",
          "digits.csv");
  const auto gives = [](const Arguments& words, const std::string& name) {
    return std::ranges::any_of(
        words, [&](const std::string& word) { return word == "--" + name || word.starts_with("--" + name + "="); });
  };
  for (const char* name : {"params", "result", "await_verdict", "output_dir", "resume", "overwrite", "fast_dev_run"})
    require(!gives(options.command, name), "tune", Where(), "--", name, " is given to the trials by the search");
  bool evaluates = false;
  for (const Parameter& parameter : space) {
    const CLI::Option* option = nullptr;
    for (const CLI::Option* known : command.get_options())
      if (known->check_lname(parameter.name)) option = known;
    if (!option) {
      const std::string near = nearest_option(command, parameter.name);
      throw ValueError(join("[tune] ", options.space, ": '", parameter.name, "' is no option of ", command.get_name(),
                            near.empty() ? "" : "; the nearest is '", near, near.empty() ? "" : "'"));
    }
    for (const std::string& name : option->get_lnames())
      require(!gives(options.command, name), "tune", Where(), options.space, ": ", parameter.name,
              " is to be chosen, but the command gives it: --", name);
    evaluates |= parameter.name == "eval_steps" || parameter.name == "eval_strategy";
  }
  const Arguments words = settle(app, options.command).arguments;
  require(options.pruner == "none" || evaluates || gives(words, "eval_steps") || gives(words, "eval_strategy"), "tune",
          Where(), "--pruner ", options.pruner, " needs evaluations on the way: --eval_strategy epoch or --eval_steps");
}

/// Keeps others out of a directory while this program, or a trial that it started, is alive.
class Lock {
 public:
  explicit Lock(const std::string& directory) {
    const std::string path = directory + "/lock";
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT, 0666);  // trials inherit it
    if (descriptor_ < 0) data::throw_file_error(path, "cannot be opened", errno, Where());
    constexpr int tries = 100;  // a trial whose search was killed needs a moment to save
    for (int i = 0; ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0; ++i) {
      require(i < tries && !stop_signal, "tune", Where(), directory, ": another search is at work here");
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  ~Lock() { ::close(descriptor_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int descriptor_;
};

/// Writes down what is searched, or compares it with what the directory was begun with.
void open_search(const Options& options, const Space& space) {
  const std::string path = options.directory + "/search.json";
  nlohmann::ordered_json now;
  for (const Parameter& parameter : space) now["space"][parameter.name] = parameter.distribution;
  now["command"] = options.command;
  now["objective"] = options.objective;
  now["direction"] = options.direction;
  now["sampler"] = options.sampler;
  now["grid_points"] = options.grid_points;
  now["pruner"] = options.pruner;
  now["pruner_warmup"] = options.pruner_warmup;
  now["seed"] = options.seed;
  if (std::filesystem::exists(path)) {
    const json begun = data::parse_json(data::read_file(path), "tune", path);
    std::string changed;
    for (const auto& [name, value] : now.items())
      if (const json before = begun.is_object() ? begun.value(name, json()) : json(); json(value) != before)
        changed += join(changed.empty() ? "" : "; ", name, " ", value.dump(), ", begun with ", before.dump());
    require(changed.empty(), "tune", Where(), options.directory, " holds a search with other options: ", changed);
    return;
  }
  data::AtomicFile file(path);
  file.write_text(now.dump(2) + "\n");
  file.commit();
}

std::string spelled(const json& params) {
  std::string out;
  for (const auto& [name, value] : params.items())
    out += join(out.empty() ? "" : ", ", name, " ", value.is_string() ? value.get<std::string>() : value.dump());
  return out;
}

void say(const Options& options, const Trial& trial, const Trials& trials) {
  if (options.quiet) return;
  if (trial.state == "failed") {
    std::fprintf(stderr, "%s failed with exit code %d: %s\n", trial_name(trial.number).c_str(), trial.exit_code,
                 trial.error.c_str());
    return;
  }
  const bool best = trials.best() && trials.best()->number == trial.number;
  std::fprintf(stderr, "%s %s: %s %.5g after %lld steps, %.1f s%s: %s\n", trial_name(trial.number).c_str(),
               trial.state.c_str(), options.objective.c_str(), trial.objective, static_cast<long long>(trial.steps),
               trial.seconds, best ? ", best so far" : "", spelled(trial.params).c_str());
}

void conclude(const Options& options, const Trials& trials) {
  const Trial* best = trials.best();
  int64_t steps = 0;
  double epochs = 0, seconds = 0;
  for (const Trial& trial : trials.all()) steps += trial.steps, epochs += trial.epoch, seconds += trial.seconds;
  const int64_t complete = trials.count("complete"), pruned = trials.count("pruned"), failed = trials.count("failed");
  if (options.as_json) {
    nlohmann::ordered_json out{{"trials", trials.all().size()},
                               {"complete", complete},
                               {"pruned", pruned},
                               {"failed", failed},
                               {"steps", steps},
                               {"epochs", epochs},
                               {"seconds", seconds},
                               {"best", nullptr}};
    if (best) {
      out["best"] = json_of(*best);
      out["best"]["directory"] = options.directory + "/" + trial_name(best->number);
    }
    std::printf("%s\n", out.dump().c_str());
    return;
  }
  std::printf("%zu trials: %lld complete, %lld pruned, %lld failed; %lld steps, %.1f epochs, %.0f s\n",
              trials.all().size(), static_cast<long long>(complete), static_cast<long long>(pruned),
              static_cast<long long>(failed), static_cast<long long>(steps), epochs, seconds);
  if (!best) return;
  std::printf("best: %s, %s %.6g\n", trial_name(best->number).c_str(), options.objective.c_str(), best->objective);
  for (const auto& [name, value] : best->params.items())
    std::printf("  %-28s %s\n", name.c_str(),
                value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
  std::printf("its model: %s/%s; all trials: %s/trials.svg\n", options.directory.c_str(),
              trial_name(best->number).c_str(), options.directory.c_str());
}

void check_not_all_failed(const Trials& trials) {
  const auto& all = trials.all();
  if (all.empty() || trials.count("failed") < static_cast<int64_t>(all.size())) return;
  const std::string text = join("[tune] all ", all.size(), " trials failed; the last one: ", all.back().error);
  if (std::ranges::all_of(all, [](const Trial& trial) { return trial.exit_code == 2 || trial.exit_code == 0; }))
    throw ValueError(text);
  throw std::runtime_error(text);
}

void tune(Options options, CLI::App& app) {
  const Space space = read_space(options.space);
  if (!options.objective.starts_with("eval_")) options.objective = "eval_" + options.objective;
  if (options.direction.empty()) options.direction = options.objective.ends_with("loss") ? "minimize" : "maximize";
  check_command(options, space, app);
  std::optional<Grid> grid;
  if (options.sampler == "grid") grid.emplace(space, options.grid_points, options.seed);
  constexpr int64_t usual_trials = 20;
  int64_t count = options.trials > 0 ? options.trials : grid ? grid->size() : usual_trials;
  if (grid) count = std::min(count, grid->size());

  stop_on_signals();
  train::make_directory(options.directory);
  const Lock lock(options.directory);
  open_search(options, space);
  Trials trials(options.directory, options.direction == "maximize");
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
  for (int64_t number = 0; number < count && !stop_signal; ++number) {
    if (trials.has(number)) continue;
    json params = params_begun(options.directory, number);
    if (params.is_null() && grid) params = grid->values(number);
    if (params.is_null() && options.sampler == "random") params = random_values(space, options.seed, number);
    if (optuna) params = optuna->ask(number, params);
    const std::optional<Trial> trial = run_trial(command, number, params, verdict);
    if (!trial) break;
    trials.append(*trial);
    if (optuna) optuna->tell(*trial);
    plot_trials(options.directory, trials, options.objective, space);
    say(options, *trial, trials);
  }
  if (stop_signal) {
    std::fprintf(stderr, "stopped after %zu trials; the same command goes on\n", trials.all().size());
    exit_code = 128 + static_cast<int>(stop_signal);
    return;
  }
  check_not_all_failed(trials);
  conclude(options, trials);
}

}  // namespace

void add_tune(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("tune", "search for the options that train best: cinta tune --space FILE -- train mlp ...");
  command->add_option("--config", options->config, "JSON file of options");
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
  command->add_option("--seed", options->seed, "of the choice of values")->capture_default_str()->check(whole_number());
  command->add_option("--storage", options->storage,
                      "Optuna's, for its dashboards, such as sqlite:///search.db; unless given: in memory");
  command->add_option("--python", options->python, "that has Optuna")->capture_default_str();
  command->add_flag("--json", options->as_json, "one object");
  command->add_flag("--quiet", options->quiet, "no line for each trial");
  command->add_option("command", options->command, "behind --: the training that all trials share");
  set_work(*command, [options, &app] { tune(*options, app); });
}

}  // namespace cinta::tools
