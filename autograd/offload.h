// Host offload: while an OffloadScope is alive, what ops save goes to another device's memory and comes back when
// backward asks for it.
#pragma once
#include "cinta/autograd/mode.h"

namespace cinta::autograd {

class OffloadScope {
 public:
  /// Tensors of at least `smallest_bytes` go to `to`. A scope inside a checkpointed segment has no effect there. Throws
  /// DeviceError for a device that is not built, or has no memory.
  explicit OffloadScope(Device to = host, int64_t smallest_bytes = 4096, Where where = Where::current());
  ~OffloadScope();
  OffloadScope(const OffloadScope&) = delete;

 private:
  std::shared_ptr<Keeper> keeper_;
  Keeper* before_;
};

}  // namespace cinta::autograd
