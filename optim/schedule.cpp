// The curves of the schedules.
#include "cinta/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <string>

namespace cinta::optim {
namespace {
constexpr std::string_view names[] = {"constant", "linear", "cosine", "polynomial", "inverse_sqrt"};

bool ends(ScheduleKind kind) { return kind != ScheduleKind::constant && kind != ScheduleKind::inverse_sqrt; }
}  // namespace

std::string_view name_of(ScheduleKind kind) { return names[static_cast<size_t>(kind)]; }

ScheduleKind parse_schedule(std::string_view name, Where where) {
  const auto found = std::find(std::begin(names), std::end(names), name);
  std::string known;
  for (const std::string_view one : names) known += (known.empty() ? "" : ", ") + std::string(one);
  require(found != std::end(names), "schedule", where, "one of ", known, "; given ", name);
  return static_cast<ScheduleKind>(found - std::begin(names));
}

void check(const Schedule& schedule, Where where) {
  require(schedule.warmup >= 0, "schedule", where, "warm-up steps are not negative: ", schedule.warmup);
  require(!ends(schedule.kind) || (schedule.total > 0 && schedule.total >= schedule.warmup), "schedule", where,
          name_of(schedule.kind), " needs a total of steps, at least its warm-up: total ", schedule.total, ", warm-up ",
          schedule.warmup);
  require(schedule.power > 0 && std::isfinite(schedule.power), "schedule", where, "power is above 0: ", schedule.power);
  require(schedule.end_factor >= 0 && schedule.end_factor <= 1, "schedule", where,
          "the end factor is in [0, 1]: ", schedule.end_factor);
}

double rate_factor(const Schedule& schedule, int64_t step) {
  const auto at = static_cast<double>(step), warmup = static_cast<double>(schedule.warmup);
  if (step < schedule.warmup) return at / warmup;
  if (schedule.kind == ScheduleKind::inverse_sqrt) {
    // 1/sqrt(step / warm-up): without one, the curve that reaches 1/sqrt 2 after 10,000 steps.
    const double scale = schedule.warmup > 0 ? warmup : 10000;
    return 1 / std::sqrt((at - warmup + scale) / scale);
  }
  if (schedule.kind == ScheduleKind::constant) return 1;
  const auto total = static_cast<double>(schedule.total);
  const double left = std::max(0.0, total - at) / std::max(1.0, total - warmup);
  switch (schedule.kind) {
    case ScheduleKind::cosine:
      return 0.5 * (1 - std::cos(std::numbers::pi * left));
    case ScheduleKind::polynomial:
      return (1 - schedule.end_factor) * std::pow(left, schedule.power) + schedule.end_factor;
    default:
      return left;
  }
}

}  // namespace cinta::optim
