// A line chart as one self-contained SVG file: light and dark by the reader's preference, readable at phone width.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cinta/core/error.h"

namespace cinta::train {

/// A curve. Where x or y is NaN or infinite the line is interrupted.
struct PlotSeries {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;
  bool dots = false;  ///< each point alone, no line between them
};

/// A dashed horizontal line, such as a baseline.
struct PlotReference {
  std::string label;
  double y;
};

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<PlotSeries> series;
  std::vector<PlotReference> references = {};
  bool log_x = false;                     ///< a point whose x is not positive is left out
  std::vector<std::string> x_names = {};  ///< what x = 0, 1, .. stand for, where they are no numbers
  double width = 480, height = 320;       ///< in units of which text is 12 high
  bool in_page = false;  ///< stands in a page that has plot_style(); says in data-frame where the numbers lie: left,
                         ///< right, top, bottom of the paper, then the least and greatest x and y there
};

/// The style sheet of every chart.
std::string_view plot_style();

/// The SVG text. Of a curve with more points than the chart has columns, the least and greatest of each column are
/// drawn. Throws ValueError where a series has more x than y or the reverse.
std::string svg_of(const Plot& plot, Where where = Where::current());

/// Replaces the file at `path` by svg_of(plot).
void plot_lines(const std::string& path, const Plot& plot, Where where = Where::current());

/// One axis: the range drawn and the round numbers marked on it.
struct PlotAxis {
  double low, high;
  std::vector<double> ticks;
  std::vector<std::string> labels;
};
/// An axis that holds [low, high] with about `count` ticks at multiples of 1, 2 or 5 times a power of ten. With
/// `round_ends` it begins and ends at ticks.
PlotAxis plot_axis(double low, double high, int count, bool round_ends);
/// The same on a logarithmic scale: all but the labels are powers of ten, by their exponents.
PlotAxis plot_log_axis(double low, double high);
/// An axis with room for each of these names at 0, 1, ..
PlotAxis plot_named_axis(const std::vector<std::string>& names);

}  // namespace cinta::train
