// What this machine can do at most, measured: what rows are held against.
#pragma once
#include <cstdint>

#include "tools/row_times.h"

namespace cinta::tools {

/// By all threads, in operations or bytes a second.
struct MachineLimits {
  Dtype products = Dtype::f32;  ///< what they multiply
  double flops = 0;             ///< of products: the best that a large one reached
  double bytes = 0;             ///< read and written: the best of memcpy, of a sum of two arrays, of a change in place
};

/// How fast work was done: a product's operations, or else its bytes, held against their limit.
struct Rate {
  double giga;  ///< GF/s or GB/s
  const char* unit;
  double of_limit;
};
Rate rate_of(const RowWork& work, double seconds, const MachineLimits& limits);

/// Gone through in some milliseconds, so that starting threads is not measured.
inline constexpr int64_t large_bytes = int64_t{64} << 20;

/// Bytes of which the caches keep little when they have been gone through: twice the largest cache for each thread,
/// since a server has several, at least 64 and at most 512 MiB; where memory is small, a sixteenth of it.
int64_t beyond_caches();

/// On arrays that hold so many bytes together. A busy machine is measured twice, before and after what is held against
/// its limits: they are nowhere below those `known`, and of the same products.
MachineLimits measure_limits(int64_t bytes, MachineLimits known = {});

}  // namespace cinta::tools
