// The seed that makes micro-batches of unequal size add up to one batch.
#include "cinta/optim/accumulation.h"

#include "cinta/backends/kernels/elementwise.h"

namespace cinta::optim {

Tensor accumulation_seed(std::span<const int64_t> items, Dtype dtype, Device device, Where where) {
  require(!items.empty(), "accumulation", where, "at least one micro-batch");
  int64_t total = 0;
  for (const int64_t count : items)
    require(count >= 0 && !__builtin_add_overflow(total, count, &total), "accumulation", where,
            "item counts are not negative and their sum fits 63 bits: ", count);
  Tensor seed = empty({}, dtype, device);
  kernels::fill(device, seed, total > 0 ? 1.0 / static_cast<double>(total) : 0.0);
  return seed;
}

}  // namespace cinta::optim
