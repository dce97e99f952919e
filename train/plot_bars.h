// A bar chart as one self-contained SVG file, in the style of plot.h: a named bar a line, and what is to be said of it.
#pragma once
#include <string>
#include <vector>

#include "cinta/core/error.h"

namespace cinta::train {

struct PlotBar {
  std::string name;
  double length;      ///< at least 0, finite
  size_t group = 0;   ///< one of PlotBars::groups: its color
  std::string notes;  ///< stands at the right edge
};

struct PlotBars {
  std::string title;
  std::string subtitle;
  std::string x_label;
  std::vector<std::string> groups;  ///< at most six, explained above the bars
  std::vector<PlotBar> bars;        ///< from above
  double width = 760;               ///< in units of which text is 12 high; the bars give the height
};

/// The SVG text. Throws ValueError for a bar that has no length or no group.
std::string svg_of(const PlotBars& plot, Where where = Where::current());

/// Replaces the file at `path` by svg_of(plot).
void plot_bars(const std::string& path, const PlotBars& plot, Where where = Where::current());

}  // namespace cinta::train
