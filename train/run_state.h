// Where a run stands: what the loop needs, beside the weights and the optimizer's state, to go on.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace cinta::train {

struct RunState {
  int64_t step = 0;
  double loss_sum = 0, correct_sum = 0;  ///< of the logging interval that was under way
  int64_t items = 0;
  int64_t evaluated_step = -1;            ///< whose evaluation is the last in metrics.jsonl
  std::map<std::string, double> numbers;  ///< what callbacks keep, under names that begin with their own
};

}  // namespace cinta::train
