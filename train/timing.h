// A clock, and best, median and spread of what it measured.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

namespace cinta::train {

/// Monotonic time.
inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Statistics {
  double best = 0, median = 0;
  double spread = 0;  ///< the distance between the quartiles over the median

  Statistics() = default;
  explicit Statistics(std::vector<double> values) {
    if (values.empty()) return;
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {  // between the two that it lies between
      const double place = share * static_cast<double>(values.size() - 1);
      const auto below = static_cast<size_t>(place);
      return std::lerp(values[below], values[std::min(below + 1, values.size() - 1)], place - std::floor(place));
    };
    best = values.front();
    median = 0.5 * (values[(values.size() - 1) / 2] + values[values.size() / 2]);
    spread = (at(0.75) - at(0.25)) / median;
  }
};

/// Runs `f` until `least_seconds` have passed, in blocks of `block` calls, and gives the seconds of one call in each
/// block, of four at least. One block before is not counted.
template <class F>
Statistics time_calls(F&& f, double least_seconds = 0.3, int64_t block = 1) {
  std::vector<double> times;
  double total = 0;
  for (int round = 0; round < 5 || total < least_seconds; ++round) {
    const double start = seconds();
    for (int64_t i = 0; i < block; ++i) f();
    const double took = seconds() - start;
    if (round == 0) continue;
    times.push_back(took / static_cast<double>(block));
    total += took;
  }
  return Statistics(times);
}

}  // namespace cinta::train
