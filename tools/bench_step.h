// A training step under the clock: as a whole, by stage and by kernel row.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cinta/train/timing.h"
#include "tools/machine_limits.h"
#include "tools/row_times.h"
#include "tools/sample_step.h"

namespace cinta::tools {

enum Stage { forward_stage, backward_stage, update_stage };
inline constexpr int stage_count = 3;
inline constexpr const char* stage_names[] = {"forward", "backward", "update"};

/// The calls of a row in one stage; all figures are of one step.
struct RowSum {
  std::string row;
  Stage stage;
  double calls = 0, seconds = 0;
  RowWork work;
};

struct StepTimes {
  train::Statistics step, stages[stage_count];  ///< seconds, with nobody watching
  int64_t allocated_bytes = 0;                  ///< asked of the machine in all these steps
  double loss = 0;                              ///< of the last step
  /// Of the faster half of as many steps again, watched: the rows, the costliest first; the step; what of it no row
  /// ran.
  std::vector<RowSum> rows;
  double watched = 0, between_rows = 0;
};

/// Trains by AdamW: `warmup` steps unseen, then twice `steps`.
StepTimes time_steps(const SampleStep& sample, int64_t warmup, int64_t steps);

/// What is said of a step beside its times.
struct StepSubject {
  std::string model, unit, precision;         ///< "bert-mini", "tokens", "bf16"
  std::string architecture = {};              ///< "mlp", or the class
  std::vector<int64_t> sizes = {};            ///< an MLP's
  std::vector<std::string> without = {};      ///< fused rows that were done with others
  double dropout = 0, attention_dropout = 0;  ///< of a BERT
  bool ragged = false;                        ///< its sequences are laid end to end
  int64_t batch = 0, sequence = 0, masked = 0, units = 0, warmup = 0, steps = 0;
};
void print_step(const StepSubject& subject, const StepTimes& times, const MachineLimits& limits);
void print_step_json(const StepSubject& subject, const StepTimes& times, const MachineLimits& limits);
/// Replaces the file at `path` by a picture of the time by row.
void plot_step(const std::string& path, const StepSubject& subject, const StepTimes& times,
               const MachineLimits& limits);

}  // namespace cinta::tools
