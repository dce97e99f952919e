// Where a step's time went, by op and by module.
#include <algorithm>
#include <map>

#include "cinta/train/readable.h"
#include "cinta/train/report_sections.h"

namespace cinta::train {
namespace {

using Kind = TraceSlice::Kind;
constexpr int op_colors = 8, rest_color = 8, phase_color = 9;
constexpr size_t most_rows = 14;

/// Time by the name that `name_of` gives a slice; "" leaves it to the row of what is no op's.
template <class NameOf>
std::vector<OpTime> sum_up(const StepProfile& profile, NameOf name_of) {
  std::map<std::string, OpTime> sums;
  std::vector<const TraceSlice*> open;
  const auto add = [&](const TraceSlice& slice, int64_t time, bool call) {
    const std::string name = name_of(slice);
    OpTime& sum = sums[name];
    sum.name = name;
    const bool inside = slice.kind == Kind::backward ||
                        std::ranges::any_of(open, [](const auto* one) { return one->kind == Kind::backward; });
    (inside ? sum.backward : sum.forward) += time;
    if (call && slice.kind != Kind::backward) ++sum.calls;
  };
  for (const TraceSlice& slice : profile.slices) {
    if (!slice.ended()) continue;
    while (!open.empty() && open.back()->end <= slice.begin) open.pop_back();
    if (!open.empty()) {  // an outer slice does not count what runs inside it
      const TraceSlice* outer = open.back();
      open.pop_back();
      add(*outer, slice.begin - slice.end, false);
      open.push_back(outer);
    }
    add(slice, slice.end - slice.begin, true);
    open.push_back(&slice);
  }
  std::vector<OpTime> out;
  for (auto& [name, sum] : sums) out.push_back(std::move(sum));
  std::ranges::stable_sort(out, std::greater(), &OpTime::total);
  return out;
}

constexpr const char* between = "between ops";

bool is_frame(const TraceSlice& slice) {  // the step itself and the walk backwards: what they hold is said by others
  return slice.kind == Kind::phase && slice.name != "optimizer" && slice.name != "wait for data";
}

std::string table(const StepProfile& profile, std::vector<OpTime> rows, const char* what) {
  fold_rest(rows, most_rows, {.name = {}, .color = rest_color});
  const double whole = static_cast<double>(profile.slices.front().end - profile.slices.front().begin);
  int64_t longest = 1;
  for (const OpTime& row : rows) longest = std::max(longest, row.total());
  std::string out = element("thead", "", table_row({what}, {"calls", "forward ms", "backward ms", "share", ""}, "th"));
  for (const OpTime& row : rows) {
    const std::string color = "k" + std::to_string(row.color);
    const auto percent = [&](int64_t time) { return 100 * static_cast<double>(time) / static_cast<double>(longest); };
    out += table_row({"<i class=\"dot " + color + "\"></i>" + escaped(row.name)},
                     {row.calls ? whole_count(row.calls) : "", milliseconds(row.forward),
                      row.backward ? milliseconds(row.backward) : "",
                      formatted("%.1f", 100 * static_cast<double>(row.total()) / whole) + " %",
                      share_bar({{percent(row.forward), color}, {percent(row.backward), color + " late"}})});
  }
  return element("div", "class=\"scroll\"", element("table", "class=\"times\"", out));
}

}  // namespace

std::vector<OpTime> times_by_op(const StepProfile& profile) {
  std::vector<OpTime> out =
      sum_up(profile, [](const TraceSlice& slice) { return is_frame(slice) ? std::string(between) : slice.name; });
  int color = 0;
  for (OpTime& row : out) {
    const bool phase = row.name == between || row.name == "optimizer" || row.name == "wait for data";
    row.color = phase ? phase_color : std::min(color++, rest_color);
    if (row.name == between) row.calls = 0;
  }
  return out;
}

std::vector<OpTime> times_by_module(const StepProfile& profile) {
  std::vector<OpTime> out = sum_up(profile, [](const TraceSlice& slice) {
    return is_frame(slice)             ? std::string(between)
           : slice.kind == Kind::phase ? slice.name
           : slice.module.empty()      ? "(no module)"
                                       : slice.module;
  });
  for (OpTime& row : out) row.color = rest_color;
  return out;
}

std::string report_times(const StepProfile& profile, const std::vector<OpTime>& ops) {
  return element("div", "class=\"card\"",
                 "<h3>Time by op</h3>" + table(profile, ops, "op") +
                     "<p class=\"dim\">The paler part of a bar is backward. What runs again inside backward counts "
                     "there. The time between ops holds the recording of this one step.</p>") +
         element("div", "class=\"card\"",
                 "<h3>Time by module</h3>" + table(profile, times_by_module(profile), "module"));
}

}  // namespace cinta::train
