// A search in pictures.
#include <algorithm>

#include "cinta/train/plot.h"
#include "tools/tune_trials.h"

namespace cinta::tools {
namespace {

/// Where a parameter's value lies across: of a choice, its place among the choices.
double place_of(const Parameter& parameter, const nlohmann::json& params) {
  const nlohmann::json value = params.value(parameter.name, nlohmann::json());
  if (parameter.choices.empty()) return value.is_number() ? value.get<double>() : NAN;
  return static_cast<double>(std::ranges::find(parameter.choices, value) - parameter.choices.begin());
}

/// The objective of the trials that ended so or so, each at its `place` across.
template <class Place>
void add_dots(train::Plot& plot, const Trials& trials, Place place) {
  for (const char* state : {"complete", "pruned"}) {
    train::PlotSeries series{.name = state, .x = {}, .y = {}, .dots = true};
    for (const Trial& trial : trials.all()) {
      if (trial.state != state) continue;
      series.x.push_back(place(trial));
      series.y.push_back(trial.objective);
    }
    if (!series.x.empty()) plot.series.push_back(std::move(series));
  }
}

train::Plot scatter_of(const Parameter& parameter, const Trials& trials, const std::string& objective) {
  train::Plot plot{.title = objective + " by " + parameter.name,
                   .x_label = parameter.name,
                   .y_label = objective,
                   .series = {},
                   .log_x = parameter.logarithmic};
  for (const nlohmann::json& choice : parameter.choices)
    plot.x_names.push_back(choice.is_string() ? choice.get<std::string>() : choice.dump());
  add_dots(plot, trials, [&](const Trial& trial) { return place_of(parameter, trial.params); });
  return plot;
}

}  // namespace

void plot_trials(const std::string& directory, const Trials& trials, const std::string& objective, const Space& space) {
  train::Plot plot{.title = objective + " of each trial", .x_label = "trial", .y_label = objective, .series = {}};
  add_dots(plot, trials, [](const Trial& trial) { return static_cast<double>(trial.number); });
  train::PlotSeries best{.name = "best so far", .x = {}, .y = {}};
  for (double value = NAN; const Trial& trial : trials.all()) {
    if (trial.state == "complete" && trials.better(trial.objective, value)) value = trial.objective;
    best.x.push_back(static_cast<double>(trial.number));
    best.y.push_back(value);
  }
  plot.series.push_back(std::move(best));
  train::plot_lines(directory + "/trials.svg", plot);
  for (const Parameter& parameter : space)
    train::plot_lines(directory + "/trials-" + parameter.name + ".svg", scatter_of(parameter, trials, objective));
}

}  // namespace cinta::tools
