// The chart: round ticks, every point inside the frame, gaps where numbers are not finite, text that cannot break XML.
#include "cinta/train/plot.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>

#include "scratch.h"
#include "svg.h"

using namespace cinta;
using namespace cinta::train;
using namespace cinta::testing;

namespace {

using Labels = std::vector<std::string>;

/// The path data of every curve, those of the legend left out.
std::vector<std::string> curves(const std::string& svg) {
  std::vector<std::string> out;
  for (const auto& tag : all_between(svg, "class=\"curve ", ">"))
    if (const auto path = all_between(tag, " d=\"", "\"").at(0); path.find("h0") != path.npos) out.push_back(path);
  return out;
}

struct Point {
  double x, y;
};
std::vector<Point> points(const std::string& path) {
  std::vector<Point> out;
  for (size_t at = 0; (at = path.find_first_of("ML", at)) != path.npos;) {
    char* end = nullptr;
    const double x = std::strtod(path.c_str() + ++at, &end);
    out.push_back({x, std::strtod(end, nullptr)});
  }
  return out;
}

}  // namespace

TEST_CASE("plot: axes have round ticks", "[plot]") {
  CHECK(plot_axis(1, 5000, 5, false).labels == Labels{"1000", "2000", "3000", "4000", "5000"});
  CHECK(plot_axis(0, 30000, 5, false).labels == Labels{"0", "10k", "20k", "30k"});
  CHECK(plot_axis(0, 12500, 5, false).labels == Labels{"0", "5k", "10k"});
  CHECK(plot_axis(0.3, 0.97, 5, true).labels == Labels{"0.2", "0.4", "0.6", "0.8", "1.0"});
  CHECK(plot_axis(-0.1, 0.1, 4, true).labels == Labels{"-0.10", "-0.05", "0.00", "0.05", "0.10"});
  CHECK(plot_axis(2.31, 8.3, 5, true).labels == Labels{"2", "4", "6", "8", "10"});
  CHECK(plot_axis(1e-7, 4e-7, 4, true).labels == Labels{"1e-07", "2e-07", "3e-07", "4e-07"});
  CHECK(plot_axis(0, 2e6, 4, true).labels == Labels{"0", "5e+05", "1e+06", "1.5e+06", "2e+06"});
  for (double low : {-1e6, -3.0, 0.0, 1e-9, 0.7, 1e17}) {
    for (double span : {0.0, 1e-12, 0.001, 1.0, 7.3, 1e5, 1e200}) {
      INFO(low << " + " << span);
      const double high = low + span;
      const auto axis = plot_axis(low, high, 5, true);
      CHECK(axis.low <= low + 1e-6 * span);
      CHECK(axis.high >= high - 1e-6 * span);
      CHECK(axis.low < axis.high);
      CHECK(axis.ticks.size() >= 2);
      CHECK(axis.ticks.size() <= 9);
      CHECK(std::ranges::adjacent_find(axis.labels) == axis.labels.end());
    }
  }
}

TEST_CASE("plot: curves lie where their numbers say", "[plot]") {
  const auto svg = svg_of({.title = "t", .x_label = "x", .y_label = "y", .series = {{"a", {0, 5, 10}, {0, 1, 2}}}});
  const auto all = curves(svg);
  REQUIRE(all.size() == 1);
  const auto found = points(all[0]);
  REQUIRE(found.size() == 3);
  CHECK(found[1].x == Approx((found[0].x + found[2].x) / 2).margin(0.1));
  CHECK(found[1].y == Approx((found[0].y + found[2].y) / 2).margin(0.1));
  CHECK(found[0].x < found[2].x);
  CHECK(found[0].y > found[2].y);  // SVG counts downwards
  CHECK(balanced(svg));
}

TEST_CASE("plot: dots on a logarithmic axis, and on one of names", "[plot]") {
  CHECK(plot_log_axis(-5, -1).labels == Labels{"1e-05", "0.0001", "0.001", "0.01", "0.1"});
  CHECK(plot_log_axis(0, 1).labels == Labels{"1", "2", "5", "10"});
  CHECK(plot_log_axis(-20, 20).labels.size() <= 8);
  for (double low : {-3.7, 0.0, 2.1})
    for (double span : {0.0, 0.01, 0.2, 1.0, 6.0, 30.0}) {
      const auto axis = plot_log_axis(low, low + span);
      INFO(low << " + " << span);
      CHECK(axis.low <= low);
      CHECK(axis.high >= low + span);
      CHECK(axis.low < axis.high);
      CHECK(axis.ticks.size() >= 2);
      for (double tick : axis.ticks) CHECK((tick >= axis.low - 1e-6 && tick <= axis.high + 1e-6));
    }
  const PlotSeries scattered{.name = "a", .x = {1e-4, 1e-3, 1e-2, 0}, .y = {0, 1, 2, 3}, .dots = true};
  const auto logarithmic = svg_of({.title = "t", .x_label = "x", .y_label = "y", .series = {scattered}, .log_x = true});
  auto all = curves(logarithmic);
  REQUIRE(all.size() == 2);  // the legend's, and the points
  const auto found = points(all[1]);
  REQUIRE(found.size() == 3);  // 0 has no logarithm
  CHECK(found[1].x == Approx((found[0].x + found[2].x) / 2).margin(0.1));
  CHECK(all[1].find('L') == all[1].npos);
  CHECK(balanced(logarithmic));
  const PlotSeries chosen{.name = "a", .x = {1, 0}, .y = {1, 2}, .dots = true};
  const auto named =
      svg_of({.title = "t", .x_label = "x", .y_label = "y", .series = {chosen}, .x_names = {"one", "<two>", "three"}});
  all = curves(named);
  REQUIRE(all.size() == 2);
  CHECK(points(all[1])[0].x > points(all[1])[1].x);
  CHECK(named.find(">&lt;two&gt;</text>") != named.npos);
}

TEST_CASE("plot: a long curve keeps its peaks and stays small", "[plot]") {
  PlotSeries series{"loss", {}, {}};
  for (int step = 0; step < 100000; ++step) {
    series.x.push_back(step);
    series.y.push_back(step == 77777 ? 10 : step == 33333 ? 0 : 5 + step % 2);
  }
  const auto svg = svg_of({.title = "t", .x_label = "x", .y_label = "y", .series = {series}});
  CHECK(svg.size() < 60000);
  const auto found = points(curves(svg).at(0));
  const auto [low, high] = std::ranges::minmax_element(found, {}, &Point::y);
  const double left = found.front().x, length = found.back().x - left;
  CHECK((high->x - left) / length == Approx(0.33333).margin(0.002));
  CHECK((low->x - left) / length == Approx(0.77777).margin(0.002));
  CHECK(std::ranges::is_sorted(found, {}, [](const Point& point) { return std::floor(2 * point.x); }));
}

TEST_CASE("plot: numbers that are not finite are gaps", "[plot]") {
  const double nan = std::nan(""), inf = HUGE_VAL;
  const auto gaps = [](std::vector<double> y) {
    std::vector<double> x(y.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] = double(i);
    const auto svg = svg_of({.title = "", .x_label = "", .y_label = "", .series = {{"a", x, std::move(y)}}});
    CHECK(balanced(svg));
    CHECK(svg.find("nan") == svg.npos);
    CHECK(svg.find("inf\"") == svg.npos);
    const auto all = curves(svg);
    return all.empty() ? 0 : std::ranges::count(all[0], 'M');
  };
  CHECK(gaps({1, 2, 3}) == 1);
  CHECK(gaps({1, nan, 3}) == 2);
  CHECK(gaps({nan, 1, inf, -inf, 3, 1e308}) == 2);
  CHECK(gaps({nan, nan}) == 0);
  CHECK(gaps({}) == 0);
  CHECK(gaps({7}) == 1);
  CHECK_THAT(svg_of({"", "", "", {{"a", {1}, {nan}}}}), Catch::Contains("no finite values"));
}

TEST_CASE("plot: reference lines are in range and their labels apart", "[plot]") {
  const auto svg =
      svg_of({.title = "t",
              .x_label = "x",
              .y_label = "y",
              .series = {{"a", {0, 1}, {2, 3}}},
              .references = {{"low", 0.5}, {"high", 9}, {"also high", 9}, {"near", 8.9}, {"no", HUGE_VAL}}});
  std::vector<double> bases;
  for (const auto& tag : all_between(svg, "<text ", ">"))
    if (tag.ends_with("class=\"halo\"")) bases.push_back(std::stod(all_between(tag, "y=\"", "\"").at(0)));
  REQUIRE(bases.size() == 4);
  for (size_t i = 1; i < bases.size(); ++i) CHECK(bases[i] - bases[i - 1] >= 13.8);
  CHECK(svg.find(">no<") == svg.npos);
}

TEST_CASE("plot: any text is safe, many series wrap, sizes must agree", "[plot]") {
  Plot plot{.title = "a<b> & \"c\" \x01" + std::string(200, 'x'), .x_label = "</svg>", .y_label = "<y>", .series = {}};
  for (int i = 0; i < 20; ++i) plot.series.push_back({"series <" + std::to_string(i) + ">", {0, 1}, {0, double(i)}});
  const auto svg = svg_of(plot);
  CHECK(balanced(svg));
  CHECK(svg.find('\x01') == svg.npos);
  CHECK_THAT(svg, Catch::Contains("series &lt;19&gt;") && Catch::Contains("prefers-color-scheme:dark"));
  CHECK(curves(svg).size() == 20);
  CHECK_THROWS_WITH(svg_of({"", "", "", {{"a", {1, 2}, {1}}}}), Catch::Contains("series 'a' has 2 x and 1 y"));

  const Scratch scratch;
  plot_lines(scratch / "chart.svg", plot);
  CHECK(read_bytes(scratch / "chart.svg") == svg);
  CHECK_THROWS_AS(plot_lines(scratch / "absent/chart.svg", plot), FileError);
}
