// Schedules: pure functions from the step (from 0) to a factor of the base rate. The factor rises from 0 at step 0
// linearly over the warm-up, then follows its curve. Curves and names are those of Hugging Face's get_scheduler, which
// makes further ones, but for two: its constant has no warm-up (constant_with_warmup has), and its polynomial ends at a
// rate of 1e-7, not at a factor, here 0 unless `end_factor` says otherwise.
#pragma once
#include <cstdint>
#include <string_view>

#include "cinta/core/error.h"

namespace cinta::optim {

enum class ScheduleKind : uint8_t { constant, linear, cosine, polynomial, inverse_sqrt };
std::string_view name_of(ScheduleKind kind);
/// Throws ValueError listing the names there are.
ScheduleKind parse_schedule(std::string_view name, Where where = Where::current());

struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  int64_t warmup = 0;     ///< steps; 0 begins at the full rate
  int64_t total = 0;      ///< steps of the whole run; linear, cosine and polynomial keep their last value from there on
  double power = 1;       ///< polynomial: (what is left)^power
  double end_factor = 0;  ///< polynomial: the value at `total`
};

/// Throws ValueError unless warmup >= 0, total > 0 and total >= warmup where the kind ends, power > 0 and end_factor in
/// [0, 1].
void check(const Schedule& schedule, Where where = Where::current());
/// The factor of optimizer step `step`. `schedule` has been checked.
double rate_factor(const Schedule& schedule, int64_t step);

}  // namespace cinta::optim
