// What tests of products change for a while: the number of threads, and the kind of processor.
#pragma once
#include "cinta/backends/cpu/isa.h"
#include "thread_scope.h"

namespace cinta::testing {

/// Products are chosen as on a wide Xeon, or as on another processor: the kernels run on all with their instructions.
struct PretendedWideXeon {
  explicit PretendedWideXeon(bool wide) { pretend_wide_xeon(wide); }
  ~PretendedWideXeon() { pretend_wide_xeon({}); }
  PretendedWideXeon(const PretendedWideXeon&) = delete;
};

}  // namespace cinta::testing
