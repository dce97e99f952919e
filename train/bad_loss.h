// What to say when the loss, or a weight, is no number.
#pragma once
#include "cinta/core/callback.h"
#include "cinta/optim/optimizer.h"
#include "cinta/train/task.h"

namespace cinta::train {

/// Throws ValueError: the loss of `step` is `loss`, and the op that made it so, found by running `forward`, that of the
/// batch at fault, and its backward once more with every result looked at.
[[noreturn]] void report_bad_loss(double loss, int64_t step, const Callback<Forward()>& forward, Where where);

/// Throws ValueError naming the first trained weight that holds NaN or infinity after `step` steps: what is no number
/// does not take the place of a checkpoint that is one.
void require_finite_weights(const optim::Optimizer& optimizer, int64_t step, Where where);

}  // namespace cinta::train
