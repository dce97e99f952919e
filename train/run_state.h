// Where a run stands: what the loop needs, beside the weights and the optimizer's state, to go on.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cinta::train {

struct NamedNumber {
  std::string name;
  double value = 0;
};

struct RunState {
  int64_t step = 0;
  int64_t batches = 0;                   ///< micro-batches drawn from the source, or passed over
  double loss_sum = 0, correct_sum = 0;  ///< of the logging interval that was under way
  int64_t items = 0;
  int64_t evaluated_step = -1;       ///< whose evaluation is the last in metrics.jsonl
  bool save_due = false;             ///< after that evaluation
  bool evaluation_due = false;       ///< a signal came into the evaluation after this step
  std::vector<NamedNumber> numbers;  ///< what callbacks keep, under names that begin with their own; sorted by name

  /// What was last kept under this name; NaN when nothing was.
  double number(std::string_view name) const;
  void keep(std::string_view name, double value);
};

}  // namespace cinta::train
