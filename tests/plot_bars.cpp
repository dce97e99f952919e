// The bar chart: bars as long as their numbers, names that cannot break XML, what is no bar refused.
#include "cinta/train/plot_bars.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>

#include "svg.h"

using namespace cinta;
using namespace cinta::train;
using namespace cinta::testing;
using Catch::Matchers::Contains;

namespace {

PlotBars two_bars() {
  return {.title = "time by row",
          .subtitle = "two <rows> & no more",
          .x_label = "ms",
          .groups = {"forward", "backward"},
          .bars = {{"linear", 40, 1, "40 ms"}, {"a<b", 10, 0, ""}}};
}

/// How long the bars are drawn, those of the legend left out.
std::vector<double> lengths(const std::string& svg, size_t groups) {
  std::vector<double> out;
  for (const std::string& tag : all_between(svg, "<path class=\"bar ", "/>")) {
    const std::string from = all_between(tag, "d=\"M", " ").at(0), to = all_between(tag, "L", " ").at(0);
    out.push_back(std::strtod(to.c_str(), nullptr) - std::strtod(from.c_str(), nullptr));
  }
  return {out.begin() + static_cast<std::ptrdiff_t>(groups), out.end()};
}

}  // namespace

TEST_CASE("bars are as long as their numbers, in the color of their group", "[plot_bars]") {
  const std::string svg = svg_of(two_bars());
  CHECK(balanced(svg));
  const std::vector<double> drawn = lengths(svg, 2);
  REQUIRE(drawn.size() == 2);
  CHECK(drawn[0] > 200);
  CHECK(drawn[0] == Approx(4 * drawn[1]).margin(0.5));  // coordinates have one decimal
  CHECK_THAT(svg, Contains("a&lt;b") && Contains("two &lt;rows&gt; &amp; no more") && Contains(">40 ms</text>"));
  for (const char* group : {"c0", "c1"}) CHECK(all_between(svg, std::string("\"bar ") + group, "/>").size() == 2);
}

TEST_CASE("bars of no length at all are drawn on an axis of their own", "[plot_bars]") {
  PlotBars plot = two_bars();
  for (PlotBar& bar : plot.bars) bar.length = 0;
  CHECK(lengths(svg_of(plot), 2) == std::vector<double>{0, 0});
  plot.bars.clear();
  CHECK(balanced(svg_of(plot)));
}

TEST_CASE("what is no bar is refused by name", "[plot_bars]") {
  for (const double length : {-1.0, double(NAN), double(INFINITY)}) {
    PlotBars plot = two_bars();
    plot.bars[1].length = length;
    CHECK_THROWS_WITH(svg_of(plot), Contains("bar 'a<b'"));
  }
  PlotBars plot = two_bars();
  plot.bars[0].group = 2;
  CHECK_THROWS_WITH(svg_of(plot), Contains("one of 2 groups") && Contains("group 2"));
  plot.groups.assign(7, "more");
  CHECK_THROWS_WITH(svg_of(plot), Contains("at most 6 groups, given 7"));
}
