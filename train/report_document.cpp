// The page around its parts: what the run is and how it stands, at the top; its settings, at the bottom.
#include <algorithm>
#include <cmath>

#include "cinta/data/atomic_file.h"
#include "cinta/train/plot.h"
#include "cinta/train/readable.h"
#include "cinta/train/report_sections.h"

namespace cinta::train {
namespace {

using State = ReportRun::State;

const char* name_of(State state) {
  constexpr const char* names[] = {"running", "finished", "stopped", "failed"};
  return names[static_cast<int>(state)];
}

/// The run's name: the last part of its directory.
std::string title_of(const ReportRun& run) {
  std::string path = run.directory;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return escaped(data::name_of_path(path));
}

std::string tile(const std::string& name, const std::string& value, const std::string& more) {
  return element(
      "div", "class=\"tile\"",
      element("h3", "", name) + element("p", "class=\"value\"", value) + element("p", "class=\"dim\"", more));
}

std::string number_text(double value) { return formatted("%.4g", value); }

/// The last value of a number, with its evaluation's last and best.
std::string metric_tile(const MetricsFile& metrics, const std::string& name) {
  const MetricSeries train = metrics.series(name), held_out = metrics.series("eval_" + name);
  if (train.values.empty() && held_out.values.empty()) return "";
  std::string title = name;
  std::ranges::replace(title, '_', ' ');
  std::string more;
  if (!held_out.values.empty()) {
    const bool small = name.ends_with("loss");
    size_t best = 0;
    for (size_t i = 0; i < held_out.values.size(); ++i)
      if (const double value = held_out.values[i], other = held_out.values[best];
          std::isnan(other) || (small ? value < other : value > other))
        best = i;
    more = "evaluation " + element("b", "", number_text(held_out.values.back())) + ", best " +
           number_text(held_out.values[best]) + " at step " + whole_count(static_cast<int64_t>(held_out.steps[best]));
  }
  return tile(escaped(title), train.values.empty() ? "" : number_text(train.values.back()), more);
}

std::string tiles(const ReportRun& run) {
  const MetricFields last = run.times.records.empty() ? MetricFields() : run.times.records.back().fields;
  const double speed = number(last, "items_per_second"), step_ms = number(last, "step_ms"),
               seconds = number(last, "seconds"), peak = number(last, "peak_bytes");
  const double part = run.max_steps > 0 ? static_cast<double>(run.step) / static_cast<double>(run.max_steps) : 0;
  std::string time = std::isfinite(seconds) ? clock_time(seconds) + " of training" : "";
  if (run.state == State::running && std::isfinite(step_ms))
    time += ", " + clock_time(step_ms / 1e3 * static_cast<double>(run.max_steps - run.step)) + " left";
  std::string out = tile("step", whole_count(run.step) + "<small> of " + whole_count(run.max_steps) + "</small>",
                         share_bar({{100 * part, "k0"}}) + time);
  for (const std::string& name : report_numbers(run.metrics))
    if (name != "learning_rate" && name != "grad_norm") out += metric_tile(run.metrics, name);
  if (std::isfinite(speed))
    out += tile("speed", short_count(speed) + "<small> " + escaped(run.unit) + "/s</small>",
                formatted(step_ms < 1000 ? "%.3g" : "%.0f", step_ms) + " ms a step");
  if (std::isfinite(peak))
    out += tile("memory", bytes_text(static_cast<int64_t>(peak)), "the most that tensors needed so far");
  return element("div", "class=\"tiles\"", out);
}

}  // namespace

std::string report_header(const ReportRun& run) {
  const std::string state =
      element("span", std::string("class=\"state ") + name_of(run.state) + "\"", name_of(run.state));
  return element("header", "",
                 element("h1", "", title_of(run) + " " + state) +
                     element("p", "class=\"dim\"",
                             escaped(run.model) + ", epoch " + formatted("%.2f", run.epoch) +
                                 ", as of <time id=\"written\" data-time=\"" + formatted("%.0f", run.written) + "\">" +
                                 local_time(run.written) + "</time>" +
                                 (run.note.empty() ? "" : ". " + escaped(run.note)))) +
         tiles(run);
}

std::string report_settings(const ReportRun& run) {
  std::string facts;
  const auto fact = [&](const std::string& name, const std::string& value) {
    if (!value.empty())
      facts += element("div", "", element("dt", "", escaped(name)) + element("dd", "", escaped(value)));
  };
  fact("directory", run.directory);
  fact("model", run.model);
  fact("machine", run.machine);
  for (const auto& [name, value] : run.metrics.header) {
    std::string text;
    if (const auto* string = std::get_if<std::string>(&value))
      text = *string;
    else if (const auto* flag = std::get_if<bool>(&value))
      text = *flag ? "true" : "false";
    else if (const auto* whole = std::get_if<int64_t>(&value))
      text = std::to_string(*whole);
    else if (const auto* large = std::get_if<uint64_t>(&value))
      text = std::to_string(*large);
    else
      text = formatted("%.6g", number(run.metrics.header, name));
    fact(name, text);
  }
  const std::string command = run.command.empty() ? "" : element("pre", "", escaped(run.command));
  return element("div", "class=\"card\"", command + element("dl", "", facts));
}

std::string report_profile(const StepProfile& profile) {
  if (profile.slices.empty() || !profile.slices.front().ended()) return "";
  const std::vector<OpTime> ops = times_by_op(profile);
  const int64_t length = profile.slices.front().end - profile.slices.front().begin;
  return element("h2", "",
                 join("Step ", profile.step, "<small>", milliseconds(length), " ms, ", profile.slices.size() - 1,
                      " stretches of work recorded</small>")) +
         report_timeline(profile, ops) +
         element("div", "class=\"columns\"",
                 report_times(profile, ops) + report_memory(profile) + report_kept(profile)) +
         report_tape(profile);
}

std::string report_exponents(const ReportRun& run) {
  if (run.exponents.empty()) return "";
  return element("h2", "",
                 "Exponents<small>powers of two that a step's numbers lie between, and what formats hold</small>") +
         element("div", "class=\"card\"", run.exponents) + "\n";
}

std::string report_document(const ReportRun& run) {
  const std::string profile = run.profile.empty()
                                  ? "<h2>One step</h2><p class=\"dim\">No step of this run has been recorded yet.</p>"
                                  : run.profile;
  std::string head =
      "<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n" +
      element("title", "", title_of(run) + ": " + name_of(run.state));
  if (run.state == State::running) head += "\n<noscript><meta http-equiv=\"refresh\" content=\"15\"/></noscript>";
  head += "\n<style>" + std::string(report_style) + std::string(plot_style()) + "</style>\n";
  const std::string body = report_header(run) + "\n" + element("h2", "", "Curves") + report_curves(run) + "\n" +
                           profile + "\n" + report_exponents(run) + element("h2", "", "Settings") +
                           report_settings(run);
  return "<!DOCTYPE html>\n<html lang=\"en\" data-state=\"" + std::string(name_of(run.state)) + "\">" +
         element("head", "", head) + "\n" +
         element("body", "", element("main", "", body) + "\n<script>" + std::string(report_script) + "</script>") +
         "</html>\n";
}

}  // namespace cinta::train
