// The chart of exponents: a line a tensor, a column a power of two, a panel a step; and the same as JSON.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cinta/core/format_facts.h"
#include "cinta/train/exponents.h"
#include "cinta/train/plot_markup.h"
#include "cinta/train/readable.h"

namespace cinta::train {
namespace {

constexpr const char* kinds[] = {"values", "gradients", "weights", "gradients of weights"};
constexpr double cell = 6, row = 14, gap = 10;

/// Without scales: the powers of two of the least and of the greatest number.
struct Range {
  std::string name;
  int least, top;
};

std::vector<Range> ranges() {
  std::vector<Range> out;
  for (const FormatFacts& one : float_formats)
    if (one.name == "f16" || one.name == "f8e4m3" || one.name == "f8e5m2")
      out.push_back({std::string(one.name), one.least_exponent - one.mantissa_bits, one.top_exponent});
  return out;
}

std::string percent(double share) {
  return share == 0 ? "0" : share < 0.001 ? "<0.1 %" : formatted("%.1f %%", 100 * share);
}

std::string shaded(double x, double y, double share, size_t color) {
  const std::string opacity = formatted("%.2f", std::clamp(0.12 + 0.88 * std::sqrt(2.5 * share), 0.0, 1.0));
  return "<path class=\"bar c" + std::to_string(color) + "\" style=\"opacity:" + opacity + "\" d=\"M" + plot_number(x) +
         " " + plot_number(y) + "h" + plot_number(cell) + "\"/>\n";
}

/// The exponents that a chart shows: all that are met, and the formats.
std::pair<int, int> shown(const std::vector<ExponentStep>& steps) {
  int low = -24, high = 16;
  for (const ExponentStep& step : steps)
    for (const Exponents& tensor : step.tensors)
      for (int e = Exponents::least; e <= Exponents::most; ++e)
        if (tensor.counts[static_cast<size_t>(e - Exponents::least)] > 0)
          low = std::min(low, e), high = std::max(high, e);
  return {low, high};
}

struct Panel {
  double left, top, bottom;
  int low, high;
  double x(int exponent) const { return left + cell * (exponent - low); }
};

std::string head_of(const Panel& panel, int64_t step) {
  std::string out = plot_text(panel.left, panel.top - 62, "", "title", "step " + std::to_string(step));
  double y = panel.top - 48;
  size_t color = 3;
  for (const Range& one : ranges()) {
    const std::string kind = "c" + std::to_string(color++);
    for (double x : {panel.x(one.least), panel.x(one.top + 1)})
      out += plot_line(x, y, x, panel.bottom, "reference " + kind);
    out += plot_line(panel.x(one.least), y, panel.x(one.top + 1), y, "curve " + kind) +
           plot_text(panel.x(one.least) + 4, y + 11, "", "", one.name);
    y += 14;
  }
  for (int e = (panel.low + 50) / 10 * 10 - 40; e <= panel.high; e += 10)
    if (e >= panel.low) out += plot_text(panel.x(e), panel.bottom + 16, "middle", "", "2^" + std::to_string(e));
  return out;
}

std::string row_of(const Panel& panel, const Exponents& tensor, double y) {
  std::string out;
  const auto total = static_cast<double>(std::max<int64_t>(1, tensor.total()));
  for (int e = panel.low; e <= panel.high; ++e)
    if (const int64_t count = tensor.counts[static_cast<size_t>(e - Exponents::least)])
      out += shaded(panel.x(e), y, static_cast<double>(count) / total, static_cast<size_t>(tensor.kind) % 3);
  return out;
}

/// What a format without scales loses of a tensor.
std::string losses(const Exponents& tensor) {
  std::string out;
  for (const Range& one : ranges()) {
    const bool gradient = tensor.kind == Exponents::gradient || tensor.kind == Exponents::weight_gradient;
    if (one.name != "f16" && gradient != (one.name == "f8e5m2")) continue;
    const double low = tensor.vanishing(one.least), high = tensor.saturating(one.top);
    out += (out.empty() ? "" : ", ") + one.name + " " + percent(low) + (high > 0 ? " and " + percent(high) : "");
  }
  return out + (tensor.not_finite ? ", not finite: " + std::to_string(tensor.not_finite) : "");
}

}  // namespace

std::string svg_of(const std::vector<ExponentStep>& steps) {
  const auto [low, high] = shown(steps);
  size_t longest = 0, rows = 0;
  for (const ExponentStep& step : steps) {
    for (const Exponents& tensor : step.tensors) longest = std::max(longest, tensor.name.size());
    rows = std::max(rows, step.tensors.size() + std::size(kinds));
  }
  const double names = plot_letter * static_cast<double>(longest) + gap, across = cell * (high - low + 1), notes = 210,
               panel = names + across + notes + 2 * gap, top = 118, bottom = top + row * static_cast<double>(rows);
  const double width = 2 * plot_margin + panel * static_cast<double>(std::max<size_t>(1, steps.size()));
  const std::string title = "Powers of two that a step's numbers lie between";
  std::string out = plot_opening(width, bottom + 30, title, false) + plot_title(22, width, title) +
                    plot_text(plot_margin, 40, "", "",
                              "darker: more of the tensor's numbers; at the right what formats without scales make 0, "
                              "and what is too large for them");
  for (size_t i = 0; i < steps.size(); ++i) {
    const Panel here{plot_margin + panel * static_cast<double>(i) + names, top, bottom, low, high};
    out += head_of(here, steps[i].step);
    double y = top;
    int kind = -1;
    for (const Exponents& tensor : steps[i].tensors) {
      if (std::exchange(kind, tensor.kind) != tensor.kind)
        out += plot_text(here.left - names, (y += row) - 3, "", "title", kinds[tensor.kind]);
      y += row;
      out += plot_text(here.left - gap, y - 3, "end", "", tensor.name) + row_of(here, tensor, y - 7) +
             plot_text(here.left + across + gap, y - 3, "", "", losses(tensor));
    }
  }
  return out + "</svg>\n";
}

std::string json_of(const std::vector<ExponentStep>& steps) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const ExponentStep& step : steps) {
    nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
    for (const Exponents& one : step.tensors) {
      nlohmann::ordered_json lost = nlohmann::ordered_json::object();
      for (const Range& range : ranges())
        lost[range.name] = {{"vanishing", one.vanishing(range.least)}, {"saturating", one.saturating(range.top)}};
      tensors.push_back({{"name", one.name},
                         {"kind", kinds[one.kind]},
                         {"zeros", one.zeros},
                         {"not_finite", one.not_finite},
                         {"lost", lost},
                         {"counts", one.counts}});
    }
    all.push_back({{"step", step.step}, {"tensors", tensors}});
  }
  return nlohmann::ordered_json{{"least_exponent", Exponents::least}, {"steps", all}}.dump() + "\n";
}

}  // namespace cinta::train
