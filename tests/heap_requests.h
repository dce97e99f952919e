// What this thread has asked of the heap since the program began; tests/trace.cpp counts. A sanitizer has a heap of its
// own, and nothing is counted then.
#pragma once
#include <cstdint>

namespace cinta::testing {

inline thread_local int64_t heap_requests = 0;

}  // namespace cinta::testing
