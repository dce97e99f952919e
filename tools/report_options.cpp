// --report, --report_to, --exponents, --trace and --trace_steps.
#include "tools/report_options.h"

#include "cinta/train/exponents.h"
#include "cinta/train/report_page.h"
#include "cinta/train/reports.h"
#include "tools/commands.h"

namespace cinta::tools {
namespace {

/// "10:12", or "10" for that step alone.
std::pair<int64_t, int64_t> parse_steps(const std::string& text) {
  const size_t colon = text.find(':');
  int64_t first = 0, last = 0;
  const bool fits = CLI::detail::lexical_cast(text.substr(0, colon), first) &&
                    CLI::detail::lexical_cast(colon == text.npos ? text : text.substr(colon + 1), last);
  require(fits && 1 <= first && first <= last, "train", Where(),
          "--trace_steps is FIRST:LAST, both traced and counted from 1, given '", text, "'");
  return {first, last};
}

}  // namespace

void ReportOptions::add_to(CLI::App& command) {
  command
      .add_option("--report_to", report_to,
                  "jsonl,tensorboard: event files beside metrics.jsonl, which is always written")
      ->capture_default_str();
  command.add_option("--report", report, "html: report.html in the output directory, kept up to date; none")
      ->capture_default_str()
      ->check(CLI::IsMember({"html", "none"}));
  command.add_flag(
      "--exponents", exponents,
      "exponents.svg and .json in the output directory: the powers of two that each tensor's numbers lie "
      "between in the first step and, with the trained weights, in the last, and the limits of narrow formats");
  command.add_option("--trace", trace, "file for a timeline of some steps: ui.perfetto.dev opens it");
  command.add_option("--trace_steps", trace_steps, "the first and the last step of --trace")->capture_default_str();
}

void ReportOptions::check() const {
  require(report_to != "none", "train", Where(),
          "--report_to none: metrics.jsonl is always written, and nothing else unless --report_to names it");
  for (const std::string& name : CLI::detail::split(report_to, ','))
    require(name == "jsonl" || name == "tensorboard", "train", Where(),
            "--report_to takes jsonl and tensorboard, joined by a comma, given '", report_to, "'");
  parse_steps(trace_steps);
}

void ReportOptions::add_callbacks(train::RunOptions& run, bool may_write) const {
  for (const std::string& name : CLI::detail::split(report_to, ','))
    if (name == "tensorboard") run.callbacks.push_back(std::make_shared<train::TensorBoardReport>());
  const auto [first, last] = parse_steps(trace_steps);
  if (!trace.empty() && may_write)
    run.callbacks.push_back(std::make_shared<train::TraceReport>(trace, first, last, Where()));
  if (exponents)  // before what loads other weights at the end
    run.callbacks.insert(run.callbacks.begin(), std::make_shared<train::ExponentReport>());
  if (report == "html")  // after what traces
    run.callbacks.push_back(std::make_shared<train::ReportPage>(train::ReportPage::Options{.command = command_line}));
}

}  // namespace cinta::tools
