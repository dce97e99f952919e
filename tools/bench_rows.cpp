// `cinta bench rows`: each row's call repeated, against what the machine can do where as many bytes are held.
#include "tools/bench_rows.h"

#include <algorithm>
#include <cstdio>
#include <map>
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

/// The machine's limits by the bytes that arrays hold: small ones stay in caches, call after call.
class LimitsBySize {
 public:
  LimitsBySize() {
    for (int64_t bytes = int64_t{4} << 20; bytes < beyond_caches(); bytes *= 2) limits_[bytes];
    limits_[beyond_caches()];
    measure();
  }
  /// Once more, as in measure_limits.
  void measure() {
    double flops = 0;
    for (auto& [bytes, limits] : limits_) {
      limits = measure_limits(bytes, limits);
      flops = std::max(flops, limits.flops);
    }
    for (auto& [bytes, limits] : limits_) limits.flops = flops;
  }
  /// Those measured on arrays that hold no more than the work's, where that can be.
  const MachineLimits& of(const RowWork& work) const {
    const auto above = limits_.upper_bound(static_cast<int64_t>(work.held));
    return above == limits_.begin() ? above->second : std::prev(above)->second;
  }
  const std::map<int64_t, MachineLimits>& all() const { return limits_; }

  std::string text() const {
    std::string out = join(train::formatted("%.0f", 1e-9 * limits_.begin()->second.flops), " GF/s in products, ");
    for (const auto& [bytes, limits] : limits_)
      out += join(bytes == limits_.begin()->first ? "" : ", ", train::formatted("%.1f", 1e-9 * limits.bytes),
                  " GB/s in ", bytes >> 20, " MiB");
    return out;
  }

 private:
  std::map<int64_t, MachineLimits> limits_;
};

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
  std::string sizes, variant;
  Look look;
  train::Statistics times;
  Rate rate(const LimitsBySize& limits) const { return rate_of(look.work, times.median, limits.of(look.work)); }
};

void print(const std::vector<TimedRow>& rows, const std::vector<std::string>& missing, const LimitsBySize& limits) {
  std::printf("%s; %s\nat most %s\n", train::machine_text().c_str(), train::build_text().c_str(),
              limits.text().c_str());
  std::string sizes;
  for (const TimedRow& row : rows) {
    if (row.sizes != sizes) {
      sizes = row.sizes;
      std::printf("\n%-26s %-16s %10s %10s %8s %12s %9s   f32, sizes %s\n", "row", "", "best us", "median us", "spread",
                  "rate", "of limit", sizes.c_str());
    }
    const Rate rate = row.rate(limits);
    std::printf("%-26s %-16s %10.1f %10.1f %6.1f %% %7.1f %s %7.0f %%   %s\n", row.look.row.c_str(),
                row.variant.c_str(), 1e6 * row.times.best, 1e6 * row.times.median, 100 * row.times.spread, rate.giga,
                rate.unit, 100 * rate.of_limit, row.look.shapes.c_str());
  }
  for (const std::string& row : missing) std::printf("not timed: %s\n", row.c_str());
}

void print_json(const std::vector<TimedRow>& rows, const std::vector<std::string>& missing,
                const LimitsBySize& limits) {
  Json out{{"machine", train::machine_text()},
           {"build", train::build_text()},
           {"limits", {{"gflops", 1e-9 * limits.all().begin()->second.flops}, {"memory", Json::array()}}},
           {"rows", Json::array()},
           {"not_timed", missing}};
  for (const auto& [bytes, of_bytes] : limits.all())
    out["limits"]["memory"].push_back({{"bytes", bytes}, {"gigabytes_a_second", 1e-9 * of_bytes.bytes}});
  for (const TimedRow& row : rows) {
    const Rate rate = row.rate(limits);
    out["rows"].push_back(
        {{"sizes", row.sizes},
         {"row", row.look.row},
         {"variant", row.variant},
         {"shapes", row.look.shapes},
         {"us", {{"best", 1e6 * row.times.best}, {"median", 1e6 * row.times.median}, {"spread", row.times.spread}}},
         {"flops", row.look.work.flops},
         {"bytes", row.look.work.bytes},
         {row.look.work.flops > 0 ? "gflops" : "gigabytes_a_second", rate.giga},
         {"of_limit", rate.of_limit}});
  }
  std::printf("%s\n", out.dump(2).c_str());
}

void plot(const RowsOptions& options, const std::vector<TimedRow>& rows, const LimitsBySize& limits) {
  using train::formatted;
  std::string names;
  for (const std::string& name : options.sizes) names += (names.empty() ? "" : ", ") + name;
  train::PlotBars out{.title = join("every kernel row alone, sizes ", names),
                      .subtitle = join(train::machine_text(), "; ", train::build_text()),
                      .x_label = join("% of the machine's limit: ", limits.text()),
                      .groups = {"products", "memory"},
                      .bars = {}};
  for (const TimedRow& row : rows) {
    const Rate rate = row.rate(limits);
    const std::string label = join(row.look.row, row.variant.empty() ? "" : ", ", row.variant);
    out.bars.push_back(
        {options.sizes.size() > 1 ? join(row.sizes, ": ", label) : label, 100 * rate.of_limit,
         row.look.work.flops > 0 ? size_t{0} : size_t{1},
         join(formatted("%.0f us, ", 1e6 * row.times.median), formatted("%.1f ", rate.giga), rate.unit)});
  }
  train::plot_bars(options.plot, out);
}

const RowSizes& sizes_called(const std::string& name) {
  const auto found = std::ranges::find(row_sizes, name, &RowSizes::name);
  std::string names;
  for (const RowSizes& sizes : row_sizes) names += join(names.empty() ? "" : ", ", sizes.name);
  require(found != std::end(row_sizes), "bench", Where(), "--sizes: of ", names, "; given ", name);
  return *found;
}

}  // namespace

void bench_rows(const RowsOptions& options) {
  std::vector<const RowSizes*> chosen;
  for (const std::string& name : options.sizes) chosen.push_back(&sizes_called(name));
  LimitsBySize limits;
  std::vector<TimedRow> rows;
  std::set<std::string> called;
  for (const RowSizes* sizes : chosen)
    for (const RowCase& one : row_cases(*sizes)) {
      const Look look(one);
      called.insert(look.row);
      rows.push_back({sizes->name, one.variant, look, time_case(one)});
    }
  limits.measure();
  const std::vector<std::string> missing = rows_without(called);
  options.json ? print_json(rows, missing, limits) : print(rows, missing, limits);
  if (!options.plot.empty()) plot(options, rows, limits);
}

}  // namespace cinta::tools
