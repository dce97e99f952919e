// What tests of products change for their time: the number of threads, and the kind of processor that is taken for.
#pragma once
#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/threads.h"

namespace cinta::testing {

struct Threads {
  explicit Threads(int count) : outer(threads()) { set_threads(count); }
  ~Threads() { set_threads(outer); }
  Threads(const Threads&) = delete;
  int outer;
};

/// Products are chosen as on a wide Xeon, whose kernels run on every processor with their instructions.
struct PretendedWideXeon {
  PretendedWideXeon() { pretend_wide_xeon(true); }
  ~PretendedWideXeon() { pretend_wide_xeon({}); }
  PretendedWideXeon(const PretendedWideXeon&) = delete;
};

}  // namespace cinta::testing
