// Reading a dropout site's record.
#include <cmath>

#include "cinta/backends/cpu/simd/random.h"

namespace cinta {

DropoutSite::DropoutSite(const kernels::Dropout& dropout) : stream(dropout.stream) {
  if (dropout.p == 0) return;
  const int64_t* state = dropout.state.as<const int64_t>();
  seed = static_cast<uint64_t>(state[0]);
  step = static_cast<uint32_t>(state[1]);
  first_row = state[2] * dropout.rows_per_sample;
  threshold = static_cast<uint32_t>(std::llround(static_cast<double>(dropout.p) * 0x1p32));
  scale = 1 / (1 - dropout.p);
}

}  // namespace cinta
