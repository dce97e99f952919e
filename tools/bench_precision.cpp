// Runs, differences by seed, table and curves.
#include "tools/bench_precision.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>

#include "cinta/data/atomic_file.h"
#include "cinta/data/directory_lock.h"
#include "cinta/data/file.h"
#include "cinta/optim/loss_scale.h"
#include "cinta/train/machine.h"
#include "cinta/train/metrics.h"
#include "cinta/train/plot.h"
#include "cinta/train/precision.h"
#include "cinta/train/readable.h"
#include "cinta/train/run_files.h"
#include "cinta/train/stop_signals.h"
#include "tools/commands.h"
#include "tools/tune_run.h"

namespace cinta::tools {
namespace {

using Json = nlohmann::ordered_json;

/// What one mode came to, seed by seed.
struct Outcome {
  std::string mode;
  std::vector<double> objectives = {}, seconds = {}, activation_bytes = {};  ///< bytes: the most of a run
  int64_t skipped = 0;                                                       ///< steps, of all seeds
  train::MetricSeries loss = {};                                             ///< of the first seed
};

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Of the mean of `values`; NaN for fewer than two.
double standard_error(const std::vector<double>& values) {
  const double middle = mean(values), count = static_cast<double>(values.size());
  double squares = 0;
  for (double value : values) squares += (value - middle) * (value - middle);
  return std::sqrt(squares / (count - 1) / count);
}

std::vector<double> differences(const Outcome& one, const Outcome& from) {
  std::vector<double> out;
  for (size_t i = 0; i < one.objectives.size(); ++i) out.push_back(one.objectives[i] - from.objectives[i]);
  return out;
}

void check(const PrecisionOptions& options, CLI::App& app) {
  const CLI::App& command = *command_of(app, options.command);
  require(!options.command.empty() && options.command.front() == "train" && command.get_subcommands({}).empty(),
          "bench", Where(),
          "behind -- stands what all modes share, such as: cinta bench precision -- train mlp --data digits.csv");
  for (const char* name :
       {"precision", "loss_scale", "seed", "seeds", "output_dir", "resume", "params", "result", "exponents"})
    require(!gives(options.command, name), "bench", Where(), "--", name, " is given to the runs by the benchmark");
  settle(app, options.command);  // what it names must exist before the first run
}

/// Throws ValueError for a mode that the training would refuse.
std::vector<Outcome> outcomes_of(const std::string& modes) {
  std::vector<Outcome> out;
  for (const std::string& part : CLI::detail::split(modes, ','))
    if (const size_t equals = part.find('='); equals < part.find_first_of("/:") && !out.empty())  // goes on with a list
      out.back().mode += "," + part;
    else
      out.push_back({.mode = part});
  for (const Outcome& one : out) {
    const size_t colon = one.mode.find(':');
    train::parse_precision(one.mode.substr(0, colon), Where());
    if (colon != one.mode.npos) optim::parse_loss_scale(one.mode.substr(colon + 1), Where());
  }
  return out;
}

nlohmann::json params_of(const std::string& mode, int64_t seed) {
  const size_t colon = mode.find(':');
  nlohmann::json params{{"precision", mode.substr(0, colon)}, {"seed", seed}};
  if (colon != mode.npos) params["loss_scale"] = mode.substr(colon + 1);
  if (seed == 0) params["exponents"] = true;
  return params;
}

Json json_of(const PrecisionOptions& options, const std::vector<Outcome>& outcomes) {
  Json modes = Json::array();
  for (const Outcome& one : outcomes) {
    const std::vector<double> apart = differences(one, outcomes.front());
    modes.push_back({{"mode", one.mode},
                     {options.objective, one.objectives},
                     {"mean", mean(one.objectives)},
                     {"minus_first", mean(apart)},
                     {"standard_error", apart.size() > 1 ? Json(standard_error(apart)) : Json()},
                     {"seconds", mean(one.seconds)},
                     {"peak_activation_bytes", mean(one.activation_bytes)},
                     {"skipped_steps", one.skipped}});
  }
  return {{"date", train::local_time(train::seconds_since_1970()).substr(0, 10)},
          {"machine", train::machine_text()},
          {"build", train::build_text()},
          {"command", options.command},
          {"objective", options.objective},
          {"seeds", options.seeds},
          {"modes", modes}};
}

void print(const PrecisionOptions& options, const std::vector<Outcome>& outcomes) {
  std::printf("%-28s %14s %14s %14s %10s %9s %12s\n", "mode", options.objective.c_str(),
              join("minus ", outcomes.front().mode).c_str(), "std. error", "seconds", "skipped", "activations");
  for (const Outcome& one : outcomes) {
    const std::vector<double> apart = differences(one, outcomes.front());
    const bool first = &one == &outcomes.front();
    std::printf("%-28s %14.5f %14s %14s %10.1f %9lld %8.2f MiB\n", one.mode.c_str(), mean(one.objectives),
                first ? "" : join(mean(apart)).c_str(),
                first || apart.size() < 2 ? "" : join(standard_error(apart)).c_str(), mean(one.seconds),
                static_cast<long long>(one.skipped), mean(one.activation_bytes) / (1 << 20));
  }
  std::printf("%s; %s\n%lld seeds; curves of the first: %s/precision.svg\n", train::machine_text().c_str(),
              train::build_text().c_str(), static_cast<long long>(options.seeds), options.directory.c_str());
}

/// Runs that are there already are taken for those of this command: they must be.
void require_same_command(const PrecisionOptions& options) {
  const std::string path = options.directory + "/command.json", text = Json(options.command).dump() + "\n";
  if (!std::filesystem::exists(path)) {
    require<FileError>(params_begun(options.directory, 0).is_null(), "bench", Where(), options.directory,
                       " holds runs, but not the command.json that says of what; take another --output_dir");
    data::AtomicFile file(path);
    file.write_text(text);
    return file.commit();
  }
  const std::string begun = data::read_file(path);
  require<FileError>(begun == text, "bench", Where(), options.directory, " holds runs of ",
                     begun.substr(0, begun.size() - 1), ", not of ", text.substr(0, text.size() - 1),
                     "; take another --output_dir");
}

/// Adds a run to `outcome`; false when a signal came between.
bool add_run(const PrecisionOptions& options, int64_t seed, int64_t number, Outcome& outcome) {
  const TrialCommand command{options.command, options.directory, options.objective};
  const std::optional<Trial> trial = run_trial(command, number, params_of(outcome.mode, seed), {});
  if (!trial) return false;
  require(trial->state == "complete", "bench", Where(), outcome.mode, ", seed ", seed, " failed: ", trial->error);
  outcome.objectives.push_back(trial->objective);
  outcome.seconds.push_back(trial->seconds);
  const std::string directory = options.directory + "/" + trial_name(number);
  const Json result = Json::parse(data::read_file(directory + "/result.json"));
  outcome.activation_bytes.push_back(result.value("/peak_bytes/activations"_json_pointer, NAN));
  const train::MetricsFile metrics = train::read_metrics(directory + "/metrics.jsonl");
  const train::MetricSeries skipped = metrics.series("skipped_steps");
  if (!skipped.values.empty()) outcome.skipped += static_cast<int64_t>(skipped.values.back());
  if (seed == 0) outcome.loss = metrics.series("loss");
  return true;
}

}  // namespace

void bench_precision(const PrecisionOptions& options, CLI::App& app) {
  check(options, app);
  std::vector<Outcome> outcomes = outcomes_of(options.modes);
  train::stop_on_signals();
  train::make_directory(options.directory);
  const data::DirectoryLock lock(options.directory);
  require_same_command(options);
  const auto modes = static_cast<int64_t>(outcomes.size());
  for (int64_t run = 0; run < modes * options.seeds; ++run) {
    Outcome& outcome = outcomes[static_cast<size_t>(run % modes)];
    if (!options.json) std::printf("%s, seed %lld\n", outcome.mode.c_str(), static_cast<long long>(run / modes));
    if (add_run(options, run / modes, run, outcome)) continue;
    std::fprintf(stderr, "stopped after %lld runs; the same command goes on\n", static_cast<long long>(run));
    exit_code = 128 + static_cast<int>(train::stop_signal());
    return;
  }
  train::Plot plot{.title = "Loss by precision", .x_label = "step", .y_label = "loss in nats", .series = {}};
  for (const Outcome& one : outcomes) plot.series.push_back({one.mode, one.loss.steps, one.loss.values});
  train::plot_lines(options.directory + "/precision.svg", plot);
  const std::string text = json_of(options, outcomes).dump(2) + "\n";
  data::AtomicFile file(options.directory + "/precision.json");
  file.write_text(text);
  file.commit();
  options.json ? static_cast<void>(std::fputs(text.c_str(), stdout)) : print(options, outcomes);
}

}  // namespace cinta::tools
