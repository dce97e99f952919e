// The chart of exponents: a section a kind, a line a tensor, grouped by layer; a panel a step, a column a power of two.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <string_view>

#include "cinta/train/exponents.h"
#include "cinta/train/plot_markup.h"
#include "cinta/train/readable.h"

namespace cinta::train {
namespace {

constexpr double cell = 5, row = 14, gap = 10, number = 50;
constexpr int levels = 10;  ///< of darkness; the cells of one are one path, so that a chart of a thousand lines opens

bool is_gradient(Exponents::Kind kind) { return kind == Exponents::gradient || kind == Exponents::weight_gradient; }

/// What numbers of a kind would be held in.
std::vector<ExponentRange> ranges_of(Exponents::Kind kind) {
  std::vector<ExponentRange> out = exponent_ranges();
  std::erase_if(
      out, [&](const ExponentRange& one) { return one.name != "f16" && is_gradient(kind) != (one.name == "f8e5m2"); });
  return out;
}

/// A tensor, in each step that has it; null where one does not.
struct Line {
  Exponents::Kind kind;
  std::string layer, name;  ///< the name within the layer
  std::vector<const Exponents*> steps;
};

Line line_of(const Exponents& tensor, size_t steps) {
  const std::string& name = tensor.name;
  const size_t op = name.find('/'), cut = op == name.npos ? name.rfind('.') : op;
  const std::string layer = cut == name.npos ? "" : layer_of(name.substr(0, cut));
  return {tensor.kind, layer, layer.empty() ? name : name.substr(layer.size() + 1),
          std::vector<const Exponents*>(steps)};
}

/// By kind, then by layer, in the order in which they come.
std::vector<Line> lines_of(const std::vector<ExponentStep>& steps) {
  std::vector<Line> out;
  std::map<std::pair<Exponents::Kind, std::string>, size_t> found, layers;
  for (size_t i = 0; i < steps.size(); ++i)
    for (const Exponents& tensor : steps[i].tensors) {
      const auto [at, first] = found.try_emplace({tensor.kind, tensor.name}, out.size());
      if (first) out.push_back(line_of(tensor, steps.size()));
      out[at->second].steps[i] = &tensor;
    }
  for (const Line& line : out) layers.try_emplace({line.kind, line.layer}, layers.size());
  std::ranges::stable_sort(out, {}, [&](const Line& line) {
    return std::pair(line.kind, layers.at({line.kind, line.layer}));
  });
  return out;
}

std::string percent(double share) {
  return share == 0 ? "" : share < 0.001 ? "<0.1" : formatted(share < 0.9995 ? "%.1f" : "%.0f", 100 * share);
}

/// Where the panel of one step lies, and the exponents that it shows.
struct Panel {
  double left;
  int low, high;
  double x(int exponent) const { return left + cell * (exponent - low); }
  /// The right end of a column of numbers.
  double column(size_t index) const { return x(high + 1) + number * static_cast<double>(index + 1); }
};

class Chart {
 public:
  explicit Chart(const std::vector<ExponentStep>& steps) : steps_(steps), lines_(lines_of(steps)) {
    size_t longest = 0;
    int low = -24, high = 16;
    bool all_finite = true;
    for (const Line& line : lines_)  // titles are bold
      longest =
          std::max({longest, line.name.size(), line.layer.size() + 2, std::string_view(name_of(line.kind)).size() + 2});
    for (const ExponentStep& step : steps)
      for (const Exponents& tensor : step.tensors) {
        all_finite = all_finite && tensor.not_finite == 0;
        for (int e = Exponents::least; e <= Exponents::most; ++e)
          if (tensor.counts[static_cast<size_t>(e - Exponents::least)] > 0)
            low = std::min(low, e), high = std::max(high, e);
      }
    double left = plot_margin + plot_letter * static_cast<double>(longest) + gap;
    for (size_t i = 0; i < steps.size(); ++i) {
      panels_.push_back({left, low, high});
      left = panels_.back().column(all_finite ? lost_columns - 1 : not_finite_column) + 2 * gap;
    }
    width_ = left + plot_margin - 2 * gap;
  }

  std::string draw() {
    std::string body;
    for (auto begin = lines_.begin(); begin != lines_.end();) {
      const auto end = std::find_if(begin, lines_.end(), [&](const Line& line) { return line.kind != begin->kind; });
      body += section({begin, end});
      begin = end;
    }
    const std::string title = "Powers of two that a step's numbers lie between";
    return plot_opening(width_, y_ + 20, title, false) + plot_title(22, width_, title) +
           plot_text(plot_margin, 40, "", "", "darker: more of the tensor's numbers; at the right the percentages") +
           plot_text(plot_margin, 54, "", "", "that formats without scales make 0, and that are too large for them") +
           body + "</svg>\n";
  }

 private:
  static constexpr size_t lost_columns = 4, not_finite_column = 5;  ///< two a format; the last takes two columns' room

  /// All of one kind.
  std::string section(std::span<const Line> lines) {
    const std::vector<ExponentRange> ranges = ranges_of(lines.front().kind);
    std::string text = section_head(lines.front().kind, ranges);
    const double top = y_;
    std::vector<std::array<std::string, levels + 1>> cells(panels_.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i == 0 || lines[i].layer != lines[i - 1].layer) text += layer_head(lines[i].layer, ranges);
      y_ += row;
      text += plot_text(panels_[0].left - gap, y_ - 3, "end", "", lines[i].name);
      for (size_t j = 0; j < panels_.size(); ++j)
        if (const Exponents* tensor = lines[i].steps[j]) {
          add_cells(cells[j], panels_[j], *tensor);
          text += losses(panels_[j], *tensor, ranges);
        }
    }
    return limits(ranges, top) + bars(cells, lines.front().kind) + text;
  }

  std::string section_head(Exponents::Kind kind, const std::vector<ExponentRange>& ranges) {
    y_ += 2 * row;
    std::string out = plot_text(plot_margin, y_, "", "title", name_of(kind));
    for (size_t i = 0; i < panels_.size(); ++i) {
      const Panel& panel = panels_[i];
      out += plot_text(panel.left, y_, "", "title", "step " + std::to_string(steps_[i].step));
      for (size_t j = 0; j < ranges.size(); ++j)
        out +=
            plot_text(panel.x(ranges[j].least) + 4, y_ + row * static_cast<double>(j + 1) + 3, "", "", ranges[j].name) +
            plot_text(panel.column(2 * j), y_ + 2 * row + 3, "end", "", "% to 0") +
            plot_text(panel.column(2 * j + 1), y_ + 2 * row + 3, "end", "", "% over");
    }
    y_ += 2 * row + 6;
    return out;
  }

  /// The layer's name, and what a reader who has come down to it no longer sees.
  std::string layer_head(const std::string& layer, const std::vector<ExponentRange>& ranges) {
    y_ += row + 4;
    std::string out = plot_line(plot_margin, y_ - row, width_ - plot_margin, y_ - row, "grid") +
                      plot_text(plot_margin, y_ - 3, "", "title", layer);
    for (const Panel& panel : panels_) {
      for (int e = (panel.low - 9) / 10 * 10; e <= panel.high; e += 10)
        if (e >= panel.low) out += plot_text(panel.x(e), y_ - 3, "middle", "halo", "2^" + std::to_string(e));
      for (size_t i = 0; i < ranges.size(); ++i)
        out += plot_text(panel.column(2 * i), y_ - 3, "middle", "", ranges[i].name);
    }
    return out;
  }

  /// The limits of formats, from their names at the section's head to its end.
  std::string limits(const std::vector<ExponentRange>& ranges, double top) const {
    std::string out;
    for (const Panel& panel : panels_)
      for (size_t i = 0; i < ranges.size(); ++i) {
        const std::string color = "c" + std::to_string(3 + i);
        const double left = panel.x(ranges[i].least), right = panel.x(ranges[i].top + 1),
                     y = top - 6 - row * static_cast<double>(2 - i) - 8;
        for (double x : {left, right}) out += plot_line(x, y, x, y_, "reference " + color);
        out += plot_line(left, y, right, y, "curve " + color);
      }
    return out;
  }

  void add_cells(std::array<std::string, levels + 1>& cells, const Panel& panel, const Exponents& tensor) const {
    const auto total = static_cast<double>(std::max<int64_t>(1, tensor.total()));
    for (int e = panel.low; e <= panel.high; ++e)
      if (const int64_t count = tensor.counts[static_cast<size_t>(e - Exponents::least)]) {
        const double dark = 0.12 + 0.88 * std::sqrt(2.5 * static_cast<double>(count) / total);
        cells[static_cast<size_t>(std::lround(levels * std::min(dark, 1.0)))] +=
            "M" + plot_number(panel.x(e)) + " " + plot_number(y_ - 7) + "h" + plot_number(cell);
      }
  }

  std::string bars(const std::vector<std::array<std::string, levels + 1>>& panels, Exponents::Kind kind) const {
    std::string out;
    for (const auto& cells : panels)
      for (size_t level = 0; level < cells.size(); ++level)
        if (!cells[level].empty())
          out += "<path class=\"bar c" + std::to_string(kind % 3) +
                 "\" style=\"opacity:" + formatted("%.1f", static_cast<double>(level) / levels) + "\" d=\"" +
                 cells[level] + "\"/>\n";
    return out;
  }

  /// What formats without scales lose of a tensor.
  std::string losses(const Panel& panel, const Exponents& tensor, const std::vector<ExponentRange>& ranges) const {
    std::string out;
    const auto write = [&](size_t column, const std::string& text) {
      if (!text.empty()) out += plot_text(panel.column(column), y_ - 3, "end", "", text);
    };
    for (size_t i = 0; i < ranges.size(); ++i) {
      write(2 * i, percent(tensor.vanishing(ranges[i].least)));
      write(2 * i + 1, percent(tensor.saturating(ranges[i].top)));
    }
    if (tensor.not_finite > 0)
      write(not_finite_column, short_count(static_cast<double>(tensor.not_finite)) + " not finite");
    return out;
  }

  const std::vector<ExponentStep>& steps_;
  std::vector<Line> lines_;
  std::vector<Panel> panels_;
  double width_ = 0, y_ = 54;
};

}  // namespace

std::string svg_of(const std::vector<ExponentStep>& steps) { return Chart(steps).draw(); }

}  // namespace cinta::train
