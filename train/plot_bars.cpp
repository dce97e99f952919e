// Drawing bars: names to the left of the axis, notes in a column at the right edge.
#include "cinta/train/plot_bars.h"

#include <algorithm>
#include <cmath>

#include "cinta/data/atomic_file.h"
#include "cinta/train/plot.h"
#include "cinta/train/plot_markup.h"

namespace cinta::train {
namespace {

constexpr double between_bars = 20, below_bars = 44, gap = 8;

double width_of(const std::string& text) { return plot_letter * static_cast<double>(text.size()); }

std::string class_of(size_t group) { return "bar c" + std::to_string(group); }

std::string legend(const std::vector<std::string>& groups, double y) {
  std::string out;
  double x = plot_margin;
  for (size_t i = 0; i < groups.size(); ++i) {
    out += plot_line(x, y - 4, x + 12, y - 4, class_of(i)) + plot_text(x + 18, y, "", "", groups[i]);
    x += 18 + width_of(groups[i]) + 2 * gap;
  }
  return out;
}

std::string axis_of(const PlotAxis& axis, double left, double right, double top, double bottom,
                    const std::string& label) {
  std::string out;
  for (size_t i = 0; i < axis.ticks.size(); ++i) {
    const double x = left + axis.ticks[i] / axis.high * (right - left);
    out += plot_line(x, top, x, bottom, "grid") + plot_text(x, bottom + 18, "middle", "", axis.labels[i]);
  }
  return out + plot_text((left + right) / 2, bottom + 36, "middle", "", label);
}

}  // namespace

std::string svg_of(const PlotBars& plot, Where where) {
  require(plot.groups.size() <= plot_colors, "plot", where, "bars have at most ", plot_colors, " groups, given ",
          plot.groups.size());
  double names = 0, notes = 0, longest = 0;
  for (const PlotBar& bar : plot.bars) {
    require(std::isfinite(bar.length) && bar.length >= 0 && bar.group < plot.groups.size(), "plot", where, "bar '",
            bar.name, "' has a length and one of ", plot.groups.size(), " groups, given ", bar.length, " and group ",
            bar.group);
    names = std::max(names, width_of(bar.name));
    notes = std::max(notes, width_of(bar.notes));
    longest = std::max(longest, bar.length);
  }
  const PlotAxis axis = plot_axis(0, longest > 0 ? longest : 1, 5, true);
  const double left = plot_margin + names + gap, right = std::max(left + 60, plot.width - plot_margin - notes - gap),
               top = 22 + 3 * plot_line_height, bottom = top + between_bars * static_cast<double>(plot.bars.size());
  std::string out =
      plot_opening(plot.width, bottom + below_bars, plot.title, false) + plot_title(22, plot.width, plot.title) +
      plot_text(plot_margin, 22 + plot_line_height, "", "", plot.subtitle) +
      legend(plot.groups, 22 + 2 * plot_line_height) + axis_of(axis, left, right, top, bottom, plot.x_label);
  double y = top + between_bars / 2;
  for (const PlotBar& bar : plot.bars) {
    out += plot_text(left - gap, y + 4, "end", "", bar.name) +
           plot_line(left, y, left + bar.length / axis.high * (right - left), y, class_of(bar.group));
    if (!bar.notes.empty()) out += plot_text(plot.width - plot_margin, y + 4, "end", "", bar.notes);
    y += between_bars;
  }
  return out + plot_line(left, top, left, bottom, "axis") + "</svg>\n";
}

void plot_bars(const std::string& path, const PlotBars& plot, Where where) {
  const std::string svg = svg_of(plot, where);
  data::AtomicFile file(path, where);
  file.write_text(svg);
  file.commit(where);
}

}  // namespace cinta::train
