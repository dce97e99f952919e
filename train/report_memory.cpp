// A step's memory: its curve by category, and what was alive when most was.
#include <algorithm>
#include <numeric>

#include "cinta/train/plot.h"
#include "cinta/train/readable.h"
#include "cinta/train/report_sections.h"

namespace cinta::train {
namespace {

constexpr int columns = 1000;        // of the curve
constexpr size_t most_tensors = 14;  // in the table
constexpr Category from_below[] = {Category::weights, Category::optimizer, Category::gradients, Category::activations,
                                   Category::workspace};

int64_t total(const std::array<int64_t, category_count>& live) {
  return std::accumulate(live.begin(), live.end(), int64_t{0});
}
int64_t of(const std::array<int64_t, category_count>& live, Category category) {
  return live[static_cast<size_t>(category)];
}

struct Column {
  double x;
  const TraceMemory* point;
};

/// The points of the device that the step worked on last, the highest of each column.
std::vector<Column> columns_of(const StepProfile& profile) {
  std::vector<Column> out;
  const TraceSlice& step = profile.slices.front();
  for (const TraceMemory& point : profile.memory) {
    if (point.device != profile.memory.back().device) continue;
    const double x =
        std::clamp(static_cast<double>(point.at - step.begin) / static_cast<double>(step.end - step.begin), 0.0, 1.0) *
        columns;
    if (out.empty() || static_cast<int>(out.back().x) != static_cast<int>(x))
      out.push_back({x, &point});
    else if (total(point.live) > total(out.back().point->live))
      out.back() = {x, &point};
  }
  return out;
}

/// The area below `highest` and all categories under it.
std::string area(const std::vector<Column>& points, Category highest, double top) {
  std::string path = "M0 100";
  for (size_t i = 0; i < points.size(); ++i) {
    double sum = 0;
    for (Category category : from_below) {
      sum += static_cast<double>(of(points[i].point->live, category));
      if (category == highest) break;
    }
    path += "V" + formatted("%.2f", 100 - 100 * sum / top) + "H" +
            formatted("%.1f", i + 1 < points.size() ? points[i + 1].x : double(columns));
  }
  return "<path class=\"" + color_of(highest) + "\" d=\"" + path + "V100Z\"/>\n";
}

std::string legend(const std::array<int64_t, category_count>& live) {
  std::string out;
  for (Category category : from_below)
    if (of(live, category))
      out += element("span", "",
                     "<i class=\"dot " + color_of(category) + "\"></i>" + std::string(name_of(category)) + " " +
                         bytes_text(of(live, category)));
  return element("p", "class=\"legend\"", out);
}

}  // namespace

std::string color_of(Category category) {
  constexpr const char* colors[] = {"k0", "k1", "k3", "k2", "k6"};  // in the order of the categories
  return colors[static_cast<size_t>(category)];
}

std::string report_memory_curve(const StepProfile& profile) {
  const std::vector<Column> points = columns_of(profile);
  if (points.empty()) return "";
  const auto highest = std::ranges::max_element(points, {}, [](const Column& one) { return total(one.point->live); });
  constexpr double unit = 1 << 20;
  const PlotAxis axis = plot_axis(0, static_cast<double>(total(highest->point->live)) / unit * 1.15, 4, false);
  std::string areas, lines, labels;
  for (size_t i = std::size(from_below); i-- > 0;) areas += area(points, from_below[i], axis.high * unit);
  for (size_t i = 0; i < axis.ticks.size(); ++i) {
    const std::string y = formatted("%.2f", 100 - 100 * axis.ticks[i] / axis.high);
    lines += "<path class=\"rule\" d=\"M0 " + y + "H" + std::to_string(columns) + "\"/>";
    if (i > 0) labels += element("span", "style=\"top:" + y + "%\"", axis.labels[i] + " MiB");
  }
  const std::string x = formatted("%.2f", 100 * highest->x / columns);
  return element("div", "class=\"scale\"", labels) +
         element(
             "div", "class=\"memory\"",
             element("svg", join("viewBox=\"0 0 ", columns, " 100\" preserveAspectRatio=\"none\" aria-hidden=\"true\""),
                     areas + lines) +
                 element("span",
                         std::string("class=\"peak") + (highest->x > columns / 2 ? " left" : "") +
                             "\" style=\"left:" + x + "%\"",
                         "<b>peak</b>"));
}

std::string report_memory(const StepProfile& profile) {
  const MemoryPeak& peak = profile.peak;
  std::string rows;
  int64_t listed = 0;
  const int64_t longest = peak.tensors.empty() ? 1 : std::max<int64_t>(1, peak.tensors.front().bytes);
  for (size_t i = 0; i < peak.tensors.size() && i < most_tensors; ++i) {
    const LiveTensor& one = peak.tensors[i];
    const std::string color = color_of(one.category);
    listed += one.bytes;
    rows += table_row({"<i class=\"dot " + color + "\"></i>" + escaped(one.made_by) +
                           (one.module.empty() ? "" : "<span class=\"dim\"> in " + escaped(one.module) + "</span>"),
                       element("code", "", escaped(one.tensor)), one.kept_by.empty() ? "" : escaped(one.kept_by)},
                      {bytes_text(one.bytes),
                       share_bar({{100 * static_cast<double>(one.bytes) / static_cast<double>(longest), color}})});
  }
  if (peak.total > listed)
    rows += table_row({"<i class=\"dot k9\"></i>" +
                           whole_count(static_cast<int64_t>(peak.tensors.size()) -
                                       static_cast<int64_t>(std::min(peak.tensors.size(), most_tensors))) +
                           " smaller ones, and what no op has seen",
                       "", ""},
                      {bytes_text(peak.total - listed), ""});
  const std::string when = peak.op.empty() ? ""
                                           : " at the end of <b>" + escaped(peak.op) + "</b>" +
                                                 (peak.module.empty() ? "" : " in " + escaped(peak.module));
  return element(
      "div", "class=\"card\"",
      "<h3>Memory at the peak</h3>" + element("p", "", "<b>" + bytes_text(peak.total) + "</b>" + when) +
          legend(peak.live) +
          element("div", "class=\"scroll\"",
                  element("table", "class=\"alive\"",
                          element("thead", "",
                                  table_row({"made by", "tensor", "kept for backward by"}, {"bytes", ""}, "th")) +
                              rows)));
}

}  // namespace cinta::train
