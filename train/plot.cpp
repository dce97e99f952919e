// Drawing the line chart: a grid of units that scales with the page.
#include "cinta/train/plot.h"

#include <algorithm>
#include <cmath>

#include "cinta/data/atomic_file.h"
#include "cinta/train/plot_markup.h"
#include "cinta/train/readable.h"

namespace cinta::train {
namespace {

constexpr double bottom_margin = 44, left_of_labels = 6;
constexpr double line_height = plot_line_height, letter = plot_letter;
constexpr size_t colors = plot_colors;
constexpr size_t most_marks = 24;  // a curve of so few points shows each

double right_of(const Plot& plot) { return plot.width - plot_margin; }

/// Doubles whose differences overflow are as little drawable as infinities.
bool drawable(double value) { return std::abs(value) < 1e300; }

struct Range {
  double low = HUGE_VAL, high = -HUGE_VAL;
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

/// Where numbers lie on the paper.
struct Frame {
  PlotAxis x, y;
  double left, top, right, bottom;
  double across(double value) const { return left + (value - x.low) / (x.high - x.low) * (right - left); }
  double down(double value) const { return bottom - (value - y.low) / (y.high - y.low) * (bottom - top); }
};

std::string class_of(const Plot& plot, size_t index) {
  return (plot.series[index].dots ? "curve dots c" : "curve c") + std::to_string(index % colors);
}
/// Series past the last color are dashed.
std::string dash_of(size_t index) {
  return index < colors ? "" : " stroke-dasharray=\"" + std::to_string(2 + 3 * (index / colors)) + " 4\"";
}

/// The path of points that stand alone.
std::string dots(const PlotSeries& series, const Frame& frame) {
  std::string path;
  for (size_t i = 0; i < series.x.size(); ++i)
    if (drawable(series.x[i]) && drawable(series.y[i]))
      path += "M" + plot_number(frame.across(series.x[i])) + " " + plot_number(frame.down(series.y[i])) + "h0";
  return path;
}

/// The path of a curve. A long one is thinned to the least and greatest point of each half unit across.
std::string curve(const PlotSeries& series, const Frame& frame) {
  struct Point {
    double x, y;
  };
  std::string path;
  std::vector<Point> column;  // points not yet drawn, all within one column
  bool pen_down = false;
  const bool thin = double(series.x.size()) > 4 * (frame.right - frame.left);
  const auto draw = [&](const Point& point) {
    path += (pen_down ? "L" : "M") + plot_number(point.x) + " " + plot_number(point.y) + (pen_down ? "" : "h0");
    pen_down = true;
  };
  const auto flush = [&] {
    if (column.empty()) return;
    auto [low, high] = std::ranges::minmax_element(column, {}, &Point::y);
    if (high < low) std::swap(low, high);
    draw(*low);
    if (low != high) draw(*high);
    column.clear();
  };
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (!drawable(series.x[i]) || !drawable(series.y[i])) {
      flush();
      pen_down = false;
      continue;
    }
    const Point point{frame.across(series.x[i]), frame.down(series.y[i])};
    if (!column.empty() && (!thin || std::floor(2 * column.front().x) != std::floor(2 * point.x))) flush();
    column.push_back(point);
  }
  flush();
  return path;
}

/// Names of the curves, wrapped into rows that begin at `y`; returns the markup and moves `y` below it.
std::string legend(const Plot& plot, double& y) {
  std::string out;
  double x = left_of_labels + 6;
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const double length = 32 + letter * double(plot.series[i].name.size());
    if (x > left_of_labels + 6 && x + length > right_of(plot)) {
      x = left_of_labels + 6;
      y += line_height;
    }
    const bool dots = plot.series[i].dots;
    out += "<path class=\"" + class_of(plot, i) + "\"" + dash_of(i) + " d=\"M" + plot_number(dots ? x + 9 : x) + " " +
           plot_number(y - 4) + (dots ? "h0" : "h18") + "\"/>\n";
    out += plot_text(x + 24, y, "", "", plot.series[i].name);
    x += length + 10;
  }
  if (!plot.series.empty()) y += line_height;
  return out;
}

std::string axes(const Plot& plot, const Frame& frame) {
  std::string out;
  for (size_t i = 0; i < frame.y.ticks.size(); ++i) {
    const double y = frame.down(frame.y.ticks[i]);
    out += plot_line(frame.left, y, frame.right, y, "grid");
    out += plot_text(frame.left - 6, y + 4, "end", "", frame.y.labels[i]);
  }
  for (size_t i = 0; i < frame.x.ticks.size(); ++i) {
    const double x = frame.across(frame.x.ticks[i]);
    out += plot_line(x, frame.bottom, x, frame.bottom + 4, "axis");
    out += plot_text(std::min(x, frame.right + 10 - letter * double(frame.x.labels[i].size()) / 2), frame.bottom + 18,
                     "middle", "", frame.x.labels[i]);
  }
  out += plot_line(frame.left, frame.bottom, frame.right, frame.bottom, "axis");
  return out + plot_text((frame.left + frame.right) / 2, frame.bottom + 36, "middle", "", plot.x_label);
}

std::string references(const Plot& plot, const Frame& frame) {
  std::vector<const PlotReference*> from_above;
  for (const auto& reference : plot.references)
    if (drawable(reference.y)) from_above.push_back(&reference);
  std::ranges::sort(from_above, std::greater(), &PlotReference::y);
  std::string lines, labels;
  double last = frame.top - 3;  // the base line of the label before; labels stand 14 apart
  for (const auto* reference : from_above) {
    const double y = frame.down(reference->y);
    lines += plot_line(frame.left, y, frame.right, y, "reference");
    const double base = y - 5 >= last + 14 ? y - 5 : std::max(y, last) + 14;
    labels += plot_text(frame.right - 2, base, "end", "halo", reference->label);
    last = base;
  }
  return lines + labels;
}

/// A dot on each point of a short curve.
std::string marks(const Plot& plot, size_t index, const Frame& frame) {
  const PlotSeries& series = plot.series[index];
  if (series.dots || series.x.size() > most_marks) return "";
  return "<path class=\"marks c" + std::to_string(index % colors) + "\" d=\"" + dots(series, frame) + "\"/>\n";
}

/// Where the numbers lie, so that a script can read them off the curves.
std::string frame_data(const Frame& frame) {
  const auto exact = [](double value) { return formatted("%.9g", value); };
  std::string out = " data-frame=\"";
  for (double value : {frame.left, frame.right, frame.top, frame.bottom}) out += plot_number(value) + " ";
  return out + exact(frame.x.low) + " " + exact(frame.x.high) + " " + exact(frame.y.low) + " " + exact(frame.y.high) +
         "\"";
}

}  // namespace

std::string svg_of(const Plot& given, Where where) {
  Plot plot = given;
  if (plot.log_x)
    for (PlotSeries& series : plot.series)
      for (double& value : series.x) value = value > 0 ? std::log10(value) : NAN;
  Range x, y;
  for (const auto& series : plot.series) {
    require(series.x.size() == series.y.size(), "plot", where, "series '", series.name, "' has ", series.x.size(),
            " x and ", series.y.size(), " y");
    for (size_t i = 0; i < series.x.size(); ++i)
      if (drawable(series.x[i]) && drawable(series.y[i])) {
        x.take(series.x[i]);
        y.take(series.y[i]);
      }
  }
  const bool empty = x.low > x.high;
  for (const auto& reference : plot.references)
    if (drawable(reference.y)) y.take(reference.y);
  if (empty) x = {0, 1};
  if (y.low > y.high) y = {0, 1};

  double row = 22;
  std::string head = plot_title(row, plot.width, plot.title);
  row += line_height + 3;
  head += legend(plot, row);
  head += plot_text(left_of_labels + 6, row, "", "", plot.y_label);
  const PlotAxis across = !plot.x_names.empty() ? plot_named_axis(plot.x_names)
                          : plot.log_x          ? plot_log_axis(x.low, x.high)
                                                : plot_axis(x.low, x.high, 5, false);
  Frame frame{across, plot_axis(y.low, y.high, 5, true), 0, row + 12, right_of(plot), plot.height - bottom_margin};
  size_t longest = 0;
  for (const auto& label : frame.y.labels) longest = std::max(longest, label.size());
  frame.left = left_of_labels + 10 + letter * double(longest);

  std::string out =
      plot_opening(plot.width, plot.height, plot.title, plot.in_page, plot.in_page ? frame_data(frame) : "") + head +
      axes(plot, frame);
  for (size_t i = 0; i < plot.series.size(); ++i)
    if (const auto path = plot.series[i].dots ? dots(plot.series[i], frame) : curve(plot.series[i], frame);
        !path.empty())
      out += "<path class=\"" + class_of(plot, i) + "\"" + dash_of(i) + " data-name=\"" + escaped(plot.series[i].name) +
             "\" d=\"" + path + "\"/>\n" + marks(plot, i, frame);
  out += references(plot, frame);
  if (empty)
    out += plot_text((frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2, "middle", "", "no finite values");
  return out + "</svg>\n";
}

void plot_lines(const std::string& path, const Plot& plot, Where where) {
  const std::string svg = svg_of(plot, where);
  data::AtomicFile file(path, where);
  file.write_text(svg);
  file.commit(where);
}

}  // namespace cinta::train
