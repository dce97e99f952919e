// How large a batch may be.
#pragma once
#include <cstdint>

#include "cinta/core/callback.h"
#include "cinta/core/error.h"

namespace cinta::train {

/// The largest batch size of 1 .. most that `fits`; of those tried, a step that throws OutOfMemory does not. Asks for
/// sizes that double, then halves the distance between the last that fits and the first that does not; what fits is
/// taken to fit in every smaller size too. Let `fits` do two steps: kernels keep what they took to work in, so that the
/// second may find less room than the first. For the same reason the size that is returned was the last to be tried,
/// once more where a larger one failed after it. Throws OutOfMemory where not even 1 fits.
int64_t find_batch_size(const Callback<bool(int64_t)>& fits, int64_t most, Where where = Where::current());

}  // namespace cinta::train
