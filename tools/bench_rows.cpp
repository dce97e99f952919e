// `cinta bench rows`: each row's call repeated, against what the machine can do on tensors of that size.
#include "tools/bench_rows.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "cinta/core/error.h"
#include "cinta/train/machine.h"
#include "cinta/train/plot_bars.h"
#include "cinta/train/readable.h"
#include "cinta/train/timing.h"
#include "tools/machine_limits.h"

namespace cinta::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr RowSizes small_sizes{
    .tokens = 2048, .width = 256, .inner = 1024, .heads = 4, .sequence = 128, .vocabulary = 30522, .masked = 320},
    large_sizes{
        .tokens = 8192, .width = 768, .inner = 3072, .heads = 12, .sequence = 512, .vocabulary = 30522, .masked = 640};

/// What a case turns out to call.
class Look : public RowWatcher {
 public:
  explicit Look(const RowCase& one) {
    watch_rows(cpu, this);
    one.call();
    watch_rows(cpu, nullptr);
  }
  void before(const KernelRow& called, std::span<const View> views) override {
    if (depth_++ > 0) return;
    row = called.name();
    work = work_of(row, views);
    std::set<std::string> told;
    for (const View& view : views)
      if (view && told.insert(join(view.shape)).second) shapes += (shapes.empty() ? "" : " ") + join(view.shape);
  }
  void after(const KernelRow&, std::span<const View>) override { --depth_; }

  std::string row, shapes;
  RowWork work;

 private:
  int depth_ = 0;
};

/// Seconds of a call. What takes microseconds is timed in blocks.
train::Statistics time_case(const RowCase& one) {
  constexpr double least_seconds = 0.02, block_seconds = 2e-4;
  const double start = train::seconds();
  one.call();
  const double once = train::seconds() - start;
  return train::time_calls(one.call, least_seconds,
                           std::clamp(static_cast<int64_t>(block_seconds / once), int64_t{1}, int64_t{100}));
}

/// Rows that no case calls.
std::vector<std::string> rows_without(const std::set<std::string>& called) {
  std::vector<std::string> out;
  for (const KernelRow* row : kernel_table())
    if (!called.contains(row->name())) out.emplace_back(row->name());
  return out;
}

struct TimedRow {
  std::string variant;
  Look look;
  train::Statistics times;
};

void print(const std::vector<TimedRow>& rows, const std::vector<std::string>& missing, const MachineLimits& limits) {
  std::printf("%s; %s\nat most %.0f GF/s in products, %.1f GB/s on tensors of this size\n\n",
              train::machine_text().c_str(), train::build_text().c_str(), 1e-9 * limits.flops, 1e-9 * limits.bytes);
  std::printf("%-26s %-16s %10s %10s %8s %12s %9s   %s\n", "row", "", "best us", "median us", "spread", "rate",
              "of limit", "f32 on");
  for (const TimedRow& row : rows) {
    const Rate rate = rate_of(row.look.work, row.times.median, limits);
    std::printf("%-26s %-16s %10.1f %10.1f %6.1f %% %7.1f %s %7.0f %%   %s\n", row.look.row.c_str(),
                row.variant.c_str(), 1e6 * row.times.best, 1e6 * row.times.median, 100 * row.times.spread, rate.giga,
                rate.unit, 100 * rate.of_limit, row.look.shapes.c_str());
  }
  for (const std::string& row : missing) std::printf("not timed: %s\n", row.c_str());
}

void print_json(const std::string& sizes, const std::vector<TimedRow>& rows, const std::vector<std::string>& missing,
                const MachineLimits& limits) {
  Json out{{"machine", train::machine_text()},
           {"build", train::build_text()},
           {"sizes", sizes},
           {"limits", {{"gflops", 1e-9 * limits.flops}, {"gigabytes_a_second", 1e-9 * limits.bytes}}},
           {"rows", Json::array()},
           {"not_timed", missing}};
  for (const auto& [variant, look, times] : rows) {
    const Rate rate = rate_of(look.work, times.median, limits);
    out["rows"].push_back(
        {{"row", look.row},
         {"variant", variant},
         {"shapes", look.shapes},
         {"us", {{"best", 1e6 * times.best}, {"median", 1e6 * times.median}, {"spread", times.spread}}},
         {look.work.flops > 0 ? "gflops" : "gigabytes_a_second", rate.giga},
         {"of_limit", rate.of_limit}});
  }
  std::printf("%s\n", out.dump(2).c_str());
}

void plot(const RowsOptions& options, const std::vector<TimedRow>& rows, const MachineLimits& limits) {
  using train::formatted;
  train::PlotBars out{.title = join("every kernel row alone, ", options.sizes, " sizes"),
                      .subtitle = join(train::machine_text(), "; ", train::build_text()),
                      .x_label = join("% of the machine's limit: ", formatted("%.0f", 1e-9 * limits.flops),
                                      " GF/s in products, ", formatted("%.1f", 1e-9 * limits.bytes), " GB/s"),
                      .groups = {"products", "memory"},
                      .bars = {}};
  for (const TimedRow& row : rows) {
    const Rate rate = rate_of(row.look.work, row.times.median, limits);
    out.bars.push_back(
        {join(row.look.row, row.variant.empty() ? "" : ", ", row.variant), 100 * rate.of_limit,
         row.look.work.flops > 0 ? size_t{0} : size_t{1},
         join(formatted("%.0f us, ", 1e6 * row.times.median), formatted("%.1f ", rate.giga), rate.unit)});
  }
  train::plot_bars(options.plot, out);
}

}  // namespace

void bench_rows(const RowsOptions& options) {
  const RowSizes& sizes = options.sizes == "small" ? small_sizes : large_sizes;
  // About as large as what most rows read and write, which may lie in a large cache, call after call.
  const int64_t bytes = options.sizes == "small" ? 12 * sizes.tokens * sizes.width : 3 * large_bytes;
  const MachineLimits before = measure_limits(bytes);
  std::vector<TimedRow> rows;
  std::set<std::string> called;
  for (const RowCase& one : row_cases(sizes)) {
    const Look look(one);
    called.insert(look.row);
    rows.push_back({one.variant, look, time_case(one)});
  }
  const MachineLimits limits = measure_limits(bytes, before);
  const std::vector<std::string> missing = rows_without(called);
  options.json ? print_json(options.sizes, rows, missing, limits) : print(rows, missing, limits);
  if (!options.plot.empty()) plot(options, rows, limits);
}

}  // namespace cinta::tools
