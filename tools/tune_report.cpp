// What a search prints.
#include <algorithm>
#include <cstdio>

#include "tools/tune_search.h"

namespace cinta::tools {
namespace {

using nlohmann::json;

std::string spelled(const json& params) {
  std::string out;
  for (const auto& [name, value] : params.items())
    out += join(out.empty() ? "" : ", ", name, " ", value.is_string() ? value.get<std::string>() : value.dump());
  return out;
}

void check_not_all_failed(const Trials& trials) {
  const auto& all = trials.all();
  if (all.empty() || trials.count("failed") < static_cast<int64_t>(all.size())) return;
  const std::string text = join("[tune] all ", all.size(), " trials failed; the last one: ", all.back().error);
  if (std::ranges::all_of(all, [](const Trial& trial) { return trial.exit_code == 2 || trial.exit_code == 0; }))
    throw ValueError(text);
  throw std::runtime_error(text);
}

}  // namespace

void print_trial(const TuneOptions& options, const Trial& trial, const Trials& trials) {
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

void print_search(const TuneOptions& options, const Trials& trials) {
  check_not_all_failed(trials);
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

}  // namespace cinta::tools
