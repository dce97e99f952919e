// A timed step in words, as JSON and as a picture.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cinta/train/machine.h"
#include "cinta/train/plot_bars.h"
#include "cinta/train/readable.h"
#include "tools/bench_step.h"

namespace cinta::tools {
namespace {

using Json = nlohmann::ordered_json;
using train::formatted;
constexpr const char* between_rows = "between rows";
constexpr double least_drawn = 0.002;       // of a step
constexpr size_t rest_group = stage_count;  // its color in the picture

std::string name_of(const StepSubject& subject) {
  std::string out = subject.model;
  for (size_t i = 0; i < subject.sizes.size(); ++i) out += join(i ? "-" : " ", subject.sizes[i]);
  if (subject.sizes.empty()) out += join(" (", subject.architecture, ")");
  out += join(", batch of ", subject.batch);
  if (subject.sequence) out += join(" x ", subject.ragged ? "2 to " : "", subject.sequence - subject.ragged, " tokens");
  if (subject.ragged) out += join(", ", subject.units, " in all, laid end to end");
  if (subject.masked)
    out += join(", ", subject.masked, " of each ", subject.ragged ? join(subject.sequence, " ") : "", "masked");
  const double whole = subject.dropout, part = subject.attention_dropout;
  if (whole > 0 || part > 0) out += join(", dropout ", formatted("%g", whole));
  if (part != whole) out += join(", of attention ", formatted("%g", part));
  for (size_t i = 0; i < subject.without.size(); ++i) out += join(i ? " and " : ", without ", subject.without[i]);
  return out;
}

double units_a_second(const StepSubject& subject, const StepTimes& times) {
  return static_cast<double>(subject.units) / times.step.median;
}

std::string limits_text(const MachineLimits& limits) {
  return join(formatted("%.0f", 1e-9 * limits.flops), " GF/s in products of ", limits.products, ", ",
              formatted("%.1f", 1e-9 * limits.bytes), " GB/s of memory");
}

/// What the step would take if no row were slower than the machine can be; what comes out of a cache is faster already.
double seconds_at_limits(const StepTimes& times, const MachineLimits& limits) {
  double seconds = 0;
  for (const RowSum& row : times.rows)
    seconds += row.seconds * std::min(1.0, rate_of(row.work, row.seconds, limits).of_limit);
  return seconds;
}

Json json_of(const train::Statistics& seconds) {
  return {{"best", 1e3 * seconds.best}, {"median", 1e3 * seconds.median}, {"spread", seconds.spread}};
}

}  // namespace

void print_step(const StepSubject& subject, const StepTimes& times, const MachineLimits& limits) {
  std::printf("%s, AdamW, %s\n%s; %s\nat most %s\n\n%-10s %10s %10s %8s\n", name_of(subject).c_str(),
              subject.precision.c_str(), train::machine_text().c_str(), train::build_text().c_str(),
              limits_text(limits).c_str(), "", "best ms", "median ms", "spread");
  const auto line = [](const char* name, const train::Statistics& seconds) {
    std::printf("%-10s %10.3f %10.3f %6.1f %%", name, 1e3 * seconds.best, 1e3 * seconds.median, 100 * seconds.spread);
  };
  line("step", times.step);
  std::printf("   %.0f %s/s\n", units_a_second(subject, times), subject.unit.c_str());
  for (int stage = 0; stage < stage_count; ++stage) line(stage_names[stage], times.stages[stage]), std::printf("\n");
  std::printf("bytes asked of the machine in these %lld steps: %lld; loss of the last one: %g\n\n",
              static_cast<long long>(subject.steps), static_cast<long long>(times.allocated_bytes), times.loss);

  std::printf("%-26s %-9s %7s %10s %8s %12s %9s\n", "row", "stage", "calls", "ms", "share", "rate", "of limit");
  for (const RowSum& row : times.rows) {
    const Rate rate = rate_of(row.work, row.seconds, limits);
    std::printf("%-26s %-9s %7.0f %10.3f %6.1f %% %7.1f %s %7.0f %%\n", row.row.c_str(), stage_names[row.stage],
                row.calls, 1e3 * row.seconds, 100 * row.seconds / times.watched, rate.giga, rate.unit,
                100 * rate.of_limit);
  }
  const auto sum = [&](const char* name, double seconds) {
    std::printf("%-44s %10.3f %6.1f %%\n", name, 1e3 * seconds, 100 * seconds / times.watched);
  };
  sum(between_rows, times.between_rows);
  sum("step", times.watched);
  sum("the same with every row at its limit", seconds_at_limits(times, limits));
  std::printf(
      "Rows are of the faster half of %lld more steps. Above 100 %%: out of a cache, or a product faster than that\n"
      "of 1024 x 1024 by 1024 x 1024, which is the limit.\n",
      static_cast<long long>(subject.steps));
}

void print_step_json(const StepSubject& subject, const StepTimes& times, const MachineLimits& limits) {
  Json out{{"model", subject.model}, {"architecture", subject.architecture}};
  if (!subject.sizes.empty()) out["layers"] = subject.sizes;
  out["precision"] = subject.precision;
  out["batch"] = subject.batch;
  if (subject.sequence)
    out.update(Json{{"sequence", subject.sequence},
                    {"masked", subject.masked},
                    {"ragged", subject.ragged},
                    {"tokens", subject.units},
                    {"dropout", subject.dropout},
                    {"attention_dropout", subject.attention_dropout}});
  if (!subject.without.empty()) out["without"] = subject.without;
  out.update(Json{{"machine", train::machine_text()},
                  {"build", train::build_text()},
                  {"limits",
                   {{"products", name_of(limits.products)},
                    {"gflops", 1e-9 * limits.flops},
                    {"gigabytes_a_second", 1e-9 * limits.bytes}}},
                  {"warmup", subject.warmup},
                  {"steps", subject.steps},
                  {"loss", times.loss},
                  {"step_ms", json_of(times.step)}});
  for (int stage = 0; stage < stage_count; ++stage)
    out[std::string(stage_names[stage]) + "_ms"] = json_of(times.stages[stage]);
  out[subject.unit + "_a_second"] = units_a_second(subject, times);
  out["allocated_bytes"] = times.allocated_bytes;
  Json rows = Json::array();
  for (const RowSum& row : times.rows) {
    const Rate rate = rate_of(row.work, row.seconds, limits);
    rows.push_back({{"row", row.row},
                    {"stage", stage_names[row.stage]},
                    {"calls", row.calls},
                    {"ms", 1e3 * row.seconds},
                    {"share", row.seconds / times.watched},
                    {"flops", row.work.flops},
                    {"bytes", row.work.bytes},
                    {row.work.flops > 0 ? "gflops" : "gigabytes_a_second", rate.giga},
                    {"of_limit", rate.of_limit}});
  }
  out["rows"] = std::move(rows);
  out["between_rows"] = {{"ms", 1e3 * times.between_rows}, {"share", times.between_rows / times.watched}};
  out["watched_step_ms"] = 1e3 * times.watched;
  out["at_limits_ms"] = 1e3 * seconds_at_limits(times, limits);
  // A file's name need not be UTF-8.
  std::printf("%s\n", out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void plot_step(const std::string& path, const StepSubject& subject, const StepTimes& times,
               const MachineLimits& limits) {
  train::PlotBars plot{
      .title = join(name_of(subject), ", ", subject.precision, ": ", formatted("%.2f", 1e3 * times.step.median),
                    " ms a step"),
      .subtitle = join(train::machine_text(), "; at most ", limits_text(limits)),
      .x_label = join("ms of a step, of those by row the faster half, ", formatted("%.2f", 1e3 * times.watched),
                      " ms, and of the machine's limit (above 100 %: out of a cache)"),
      .groups = {stage_names, stage_names + stage_count},
      .bars = {}};
  plot.groups.push_back("other");
  const auto share = [&](double seconds) { return formatted("%.1f %%", 100 * seconds / times.watched); };
  double rest = 0;
  size_t small = 0;
  for (const RowSum& row : times.rows) {
    if (row.seconds < least_drawn * times.watched) {
      ++small, rest += row.seconds;
      continue;
    }
    const Rate rate = rate_of(row.work, row.seconds, limits);
    plot.bars.push_back({row.row, 1e3 * row.seconds, row.stage,
                         join(share(row.seconds), ", ", formatted("%.0f ", rate.giga), rate.unit, ", ",
                              formatted("%.0f", 100 * rate.of_limit), " % of limit")});
  }
  if (small) plot.bars.push_back({join(small, " smaller"), 1e3 * rest, rest_group, share(rest)});
  plot.bars.push_back({between_rows, 1e3 * times.between_rows, rest_group, share(times.between_rows)});
  train::plot_bars(path, plot);
}

}  // namespace cinta::tools
