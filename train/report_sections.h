// What report.html shows of a run, and its parts as markup: each file report_*.cpp writes one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cinta/train/metrics.h"
#include "cinta/train/step_profile.h"

namespace cinta::train {

struct ReportRun {
  enum class State { running, finished, stopped, failed };

  std::string directory, command, model, machine;
  std::string unit;  ///< of what a step trains on: tokens, rows
  State state = State::running;
  std::string note = {};  ///< what is to be said of the state
  int64_t step = 0, max_steps = 0;
  double epoch = 0;
  double written = 0;          ///< seconds since 1970
  MetricsFile metrics = {};    ///< as metrics.jsonl
  MetricsFile times = {};      ///< as times.jsonl
  std::string profile = {};    ///< report_profile() of a step, once there is one
  std::string exponents = {};  ///< the picture of ExponentReport, once there is one
};

/// The whole page.
std::string report_document(const ReportRun& run);

std::string report_header(const ReportRun& run);
std::string report_curves(const ReportRun& run);
std::string report_settings(const ReportRun& run);
/// Empty where there is no picture.
std::string report_exponents(const ReportRun& run);

/// The names of a run's numbers, "eval_" left out: the loss, what else is told of the model, rate and gradient norm.
std::vector<std::string> report_numbers(const MetricsFile& metrics);

/// Everything about one step: the five parts below.
std::string report_profile(const StepProfile& profile);

/// Time that ops of one name took by themselves, in nanoseconds; what runs inside a backward counts as backward.
struct OpTime {
  std::string name;
  int64_t calls = 0, forward = 0, backward = 0;
  int color = 0;  ///< k0 to k9 of the style sheet
  int64_t total() const { return forward + backward; }
  void add(const OpTime& other) {
    calls += other.calls;
    forward += other.forward;
    backward += other.backward;
  }
};

/// At most `most` rows: where there are more, the last place is that of `rest`, to which all from there on are added.
template <class Row>
void fold_rest(std::vector<Row>& rows, size_t most, Row rest) {
  if (rows.size() <= most) return;
  rest.name = join(rows.size() - most + 1, " more");
  for (size_t i = most - 1; i < rows.size(); ++i) rest.add(rows[i]);
  rows.resize(most - 1);
  rows.push_back(std::move(rest));
}

/// The slowest first; phases are among them, and what is no op's.
std::vector<OpTime> times_by_op(const StepProfile& profile);
std::vector<OpTime> times_by_module(const StepProfile& profile);

std::string report_timeline(const StepProfile& profile, const std::vector<OpTime>& ops);
std::string report_times(const StepProfile& profile, const std::vector<OpTime>& ops);
std::string report_memory(const StepProfile& profile);
std::string report_kept(const StepProfile& profile);
std::string report_tape(const StepProfile& profile);

/// The memory of each category over the step, for the place above the timeline, and what the colors mean.
std::string report_memory_curve(const StepProfile& profile);
/// The class of a category's color.
std::string color_of(Category category);

extern const std::string_view report_style, report_script;

/// <name attributes>content</name>; `content` is markup.
std::string element(std::string_view name, std::string_view attributes, std::string_view content);
/// A row of a table whose first cells are text, the rest markup for numbers and bars.
std::string table_row(const std::vector<std::string>& texts, const std::vector<std::string>& numbers,
                      std::string_view cell = "td");
/// A bar of parts in percent of its whole length, each with the class of its color.
std::string share_bar(const std::vector<std::pair<double, std::string>>& parts);
/// Nanoseconds in milliseconds.
std::string milliseconds(int64_t nanoseconds);

}  // namespace cinta::train
