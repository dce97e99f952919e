// The curves of a run, and its evaluations as a table among them.
#include <algorithm>
#include <cmath>

#include "cinta/train/plot.h"
#include "cinta/train/readable.h"
#include "cinta/train/report_sections.h"

namespace cinta::train {
namespace {

constexpr std::string_view evaluation = "eval_";
constexpr size_t most_evaluations = 200;  // in the table

/// "masked_accuracy" is Masked accuracy.
std::string title_of(const std::string& name) {
  if (name == "grad_norm") return "Gradient norm";
  std::string out = name;
  std::ranges::replace(out, '_', ' ');
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 'a' + 'A');
  return out;
}

std::string chart(const std::string& title, std::vector<PlotSeries> series) {
  const Plot plot{.title = title,
                  .x_label = "step",
                  .y_label = "",
                  .series = std::move(series),
                  .width = 400,
                  .height = 260,
                  .in_page = true};
  return element("div", "class=\"card chart\"", svg_of(plot));
}

std::string value_text(const MetricFields& fields, const std::string& name) {
  for (const auto& field : fields)
    if (field.first == name) return formatted("%.5g", number(fields, name));
  return "";
}

/// The newest in front.
std::string evaluations(const MetricsFile& metrics) {
  std::vector<const MetricsRecord*> found;
  std::vector<std::string> names;
  for (const MetricsRecord& record : metrics.records) {
    bool any = false;
    for (const auto& [name, value] : record.fields) {
      if (!name.starts_with(evaluation) || name == "eval_items") continue;
      any = true;
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    if (any) found.push_back(&record);
  }
  if (found.empty()) return "";
  std::vector<std::string> heads{"epoch"};
  for (std::string name : names) {
    std::ranges::replace(name, '_', ' ');
    heads.push_back(escaped(name.substr(evaluation.size())));
  }
  std::string rows = element("thead", "", table_row({"step"}, heads, "th"));
  for (size_t i = found.size(); i-- > 0 && found.size() - i <= most_evaluations;) {
    std::vector<std::string> cells{formatted("%.2f", number(found[i]->fields, "epoch"))};
    for (const std::string& name : names) cells.push_back(value_text(found[i]->fields, name));
    rows += table_row({whole_count(found[i]->step)}, cells);
  }
  return element("div", "class=\"card evaluations\"",
                 join("<h3>Evaluations (", found.size(), ")</h3>") + element("table", "", rows));
}

}  // namespace

std::vector<std::string> report_numbers(const MetricsFile& metrics) {
  std::vector<std::string> out;
  for (const MetricsRecord& record : metrics.records)
    for (const auto& field : record.fields) {
      std::string name = field.first;
      if (name.starts_with(evaluation)) name.erase(0, evaluation.size());
      const bool told = name == "epoch" || name == "items" || std::ranges::find(out, name) != out.end();
      if (!told && !std::isnan(number(record.fields, field.first))) out.push_back(name);
    }
  const auto rank = [](const std::string& name) {
    return name == "loss" ? 0 : name == "learning_rate" ? 2 : name == "grad_norm" ? 3 : 1;
  };
  std::ranges::stable_sort(out, {}, rank);
  return out;
}

std::string report_curves(const ReportRun& run) {
  std::string out;
  for (const std::string& base : report_numbers(run.metrics)) {
    std::vector<PlotSeries> series;
    for (const std::string& name : {base, std::string(evaluation) + base}) {
      MetricSeries numbers = run.metrics.series(name);
      if (!numbers.steps.empty()) series.push_back({name, std::move(numbers.steps), std::move(numbers.values)});
    }
    if (!series.empty()) out += chart(title_of(base), std::move(series));
  }
  MetricSeries speed = run.times.series("items_per_second");
  if (!speed.steps.empty())
    out += chart("Speed", {{run.unit + " per second", std::move(speed.steps), std::move(speed.values)}});
  out += evaluations(run.metrics);
  if (out.empty()) return "<p class=\"dim\">No number has been logged yet.</p>";
  return element("div", "class=\"charts\"", out);
}

}  // namespace cinta::train
