// A step captured once as the calls of its rows, and replayed: no tape, no allocator, no checks stand between two rows.
// For small models, whose rows are as short as what surrounds them; the seam that a device's graphs use.
#pragma once
#include <vector>

#include "cinta/core/callback.h"
#include "cinta/core/context.h"

namespace cinta {

/// What a replay computes is what the step would: bit for bit, over the same memory. So whatever the step reads from
/// outside stays alive and where it is, and is written between replays: inputs with copy_(), the random state with
/// set_step(), the rate with Optimizer::prepare(). What the step decides on the host, as sizes, is decided for good.
/// Tensors that it hands out (a loss) hold the newest replay's numbers.
class CapturedStep {
 public:
  /// Runs `step`, which uses `device` alone, and captures it. Do it when what is made at first use is there, after a
  /// step. Throws what `step` does, and ValueError where it would copy from or to the host, or where something else
  /// watches the rows of `device`.
  CapturedStep(Device device, const Callback<void()>& step, Where where = Where::current());
  CapturedStep(const CapturedStep&) = delete;

  /// Runs the rows again. Throws ValueError where one met an index that is out of range.
  void replay();
  size_t rows() const { return calls_.size(); }

 private:
  Device device_;
  Context context_;  ///< the step's memory, which nothing else is given
  std::vector<Callback<void()>> calls_;
};

}  // namespace cinta
