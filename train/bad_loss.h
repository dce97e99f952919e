// What to say when the loss is no number.
#pragma once
#include "cinta/core/callback.h"
#include "cinta/train/task.h"

namespace cinta::train {

/// Throws ValueError: the loss of `step` is `loss`, and the op that made it so, found by running `forward`, that of the
/// batch at fault, and its backward once more with every result looked at.
[[noreturn]] void report_bad_loss(double loss, int64_t step, const Callback<Forward()>& forward, Where where);

}  // namespace cinta::train
