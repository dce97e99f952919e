// Round numbers for an axis, and how they are written.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cinta/train/plot.h"

namespace cinta::train {
namespace {

/// The least of 1, 2, 5 times a power of ten that is not below `step`.
double round_step(double step) {
  const double power = std::pow(10.0, std::floor(std::log10(step)));
  for (double factor : {1.0, 2.0, 5.0})
    if (step <= factor * power * (1 + 1e-9)) return factor * power;
  return 10 * power;
}

std::string label_of(double value, double step, double largest) {
  char text[48];
  if (largest >= 1e4 && largest < 1e6 && step >= 100) {
    const int digits = step >= 1000 ? 0 : 1;
    if (value == 0) return "0";
    std::snprintf(text, sizeof text, "%.*fk", digits, value / 1000);
  } else if (largest >= 1e5 || step < 1e-5) {
    const int digits = std::max(4, 2 + int(std::log10(largest / step)));  // enough to tell neighbours apart
    std::snprintf(text, sizeof text, "%.*g", digits, value);
  } else {
    const int digits = std::max(0, int(-std::floor(std::log10(step) + 1e-9)));
    std::snprintf(text, sizeof text, "%.*f", digits, value);
  }
  return text;
}

}  // namespace

PlotAxis plot_axis(double low, double high, int count, bool round_ends) {
  // A range too narrow for doubles to mark is widened around its middle.
  const double least = std::max({std::abs(low), std::abs(high), 1e-300}) * 1e-9;
  if (high - low < least) {
    const double half = low == 0 && high == 0 ? 1 : std::max(std::abs(low), std::abs(high)) * 0.1;
    low -= half;
    high += half;
  }
  const double step = round_step((high - low) / count);
  auto first = std::ceil(low / step - 1e-9), last = std::floor(high / step + 1e-9);
  if (round_ends) {
    first = std::floor(low / step + 1e-9);
    last = std::ceil(high / step - 1e-9);
  }
  PlotAxis axis{round_ends ? first * step : low, round_ends ? last * step : high, {}, {}};
  const double largest = std::max(std::abs(first), std::abs(last)) * step;
  for (double index = first; index <= last; ++index) {
    axis.ticks.push_back(index * step);
    axis.labels.push_back(label_of(index * step + 0.0, step, largest));
  }
  return axis;
}

PlotAxis plot_log_axis(double low, double high) {
  // Within some decades the multiples by 2 and 5 are marked too; across many, not every power.
  constexpr double least = 0.05, few = 2.5, many = 7;
  if (high - low < least) {
    low -= least / 2;
    high += least / 2;
  }
  PlotAxis axis{low, high, {}, {}};
  const auto mark = [&](double exponent, double factor) {
    const double at = exponent + std::log10(factor);
    if (at < low - 1e-9 || at > high + 1e-9) return;
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", factor * std::pow(10.0, exponent));
    axis.ticks.push_back(at);
    axis.labels.push_back(text);
  };
  const double stride = high - low > many ? std::ceil((high - low) / many) : 1;
  for (double exponent = std::floor(low); exponent <= high; exponent += stride) {
    mark(exponent, 1);
    for (double factor : {2.0, 5.0})
      if (high - low < few) mark(exponent, factor);
  }
  if (axis.ticks.size() >= 2) return axis;
  axis.ticks.clear();  // no round number lies there: the ends are named
  axis.labels.clear();
  for (double end : {low, high}) mark(end, 1);
  return axis;
}

PlotAxis plot_named_axis(const std::vector<std::string>& names) {
  constexpr double margin = 0.5;
  PlotAxis axis{-margin, static_cast<double>(names.size()) - margin, {}, names};
  for (size_t i = 0; i < names.size(); ++i) axis.ticks.push_back(static_cast<double>(i));
  return axis;
}

}  // namespace cinta::train
