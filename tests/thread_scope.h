// Another number of threads for a while.
#pragma once
#include "cinta/backends/threads.h"

namespace cinta::testing {

/// While alive, kernels called from this thread use `count` threads.
class ThreadScope {
 public:
  explicit ThreadScope(int count) : before_(threads()) { set_threads(count); }
  ~ThreadScope() { set_threads(before_); }
  ThreadScope(const ThreadScope&) = delete;

 private:
  int before_;
};

}  // namespace cinta::testing
