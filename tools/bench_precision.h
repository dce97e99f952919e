// The same training in several precisions: what each one costs in quality, with paired seeds.
#pragma once
#include <string>

#include "tools/settings.h"

namespace CLI {
class App;
}

namespace cinta::tools {

struct PrecisionOptions {
  Arguments command;  ///< `train mlp --data ...`
  /// By commas: a precision, or precision:loss scale, which may have commas of its own before name=number.
  std::string modes = "fp32,tf32,bf16,fp16,fp16:128,fp8,fp8/delayed,fp8/block";
  std::string directory = "runs/precision", objective = "eval_loss";
  int64_t seeds = 3;
  bool json = false;
};

/// Trains each mode with each seed in a directory of its own, or goes on where it was stopped. Prints the objective
/// and, for every mode but the first, the mean and the standard error of its difference from the first over the seeds.
/// Leaves DIR/precision.svg, loss against step, and DIR/precision.json.
void bench_precision(const PrecisionOptions& options, CLI::App& app);

}  // namespace cinta::tools
