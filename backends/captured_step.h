// A step captured once as the calls of its rows, and replayed: no tape, no allocator, no checks stand between two rows.
// For small models, whose rows are as short as what surrounds them; the seam that a device's graphs use.
#pragma once
#include <vector>

#include "cinta/backends/kept_call.h"
#include "cinta/core/context.h"

namespace cinta {

/// What a replay computes is what the step would: bit for bit, over the same memory.
/// - What the step reads from outside stays alive and where it is, and is written between replays: inputs with copy_(),
///   the random state with set_step(), the rate with Optimizer::prepare(). So what goes from one part of a step to the
///   next, as a tape from forward to backward, is captured with both, in one capture or in several.
/// - What the step decides on the host, as sizes, is decided for good. Whether it adds to a gradient or writes it is
///   one: where it does not clear the gradients itself, they are cleared or there before a replay as they were before
///   it. What it checks on the host, as where packed sequences begin, is not checked again.
/// - Tensors that it hands out (a loss) hold the newest replay's numbers. The optimizer outlives its captured step,
///   and what it shall keep (keep_shadows()) it keeps before.
class CapturedStep {
 public:
  /// Runs `step`, on this thread and on `device` alone, and captures it. Do it when what is made at first use is there,
  /// after a step. Throws what `step` does, and ValueError where it copies from or to the host, where a row of it
  /// throws, and where something else watches or uses the rows of `device` meanwhile.
  CapturedStep(Device device, const Callback<void()>& step, Where where = Where::current());
  CapturedStep(const CapturedStep&) = delete;

  /// Runs the rows again. Throws ValueError where gradients are not as they were, or an optimizer is not prepared, with
  /// nothing changed, and where a row meets an index that is out of range: at once on devices whose memory is the
  /// host's, so that what follows has not run, at the end on others. Gradients that the step clears itself are cleared
  /// then; those that it adds to may have got a part.
  void replay(Where where = Where::current());
  size_t rows() const { return calls_.size(); }

  /// A call, and the name of its row.
  struct Call {
    const char* row;
    KeptCall kept;
  };

 private:
  Device device_;
  Context context_;  ///< the step's memory, which nothing else is given
  std::vector<Call> calls_;
};

}  // namespace cinta
