// Reading the record that random words follow from, and that of a dropout site.
#include <cmath>

#include "cinta/backends/cpu/simd/random.h"

namespace cinta {

WordSource::WordSource(const View& state, uint32_t stream) : stream(stream) {
  const int64_t* record = state.as<const int64_t>();
  seed = static_cast<uint64_t>(record[0]);
  step = static_cast<uint32_t>(record[1]);
  first_sample = record[2];
}

DropoutRecord::DropoutRecord(const kernels::Dropout& dropout)
    : WordSource(dropout.p == 0 ? WordSource() : WordSource(dropout.state, dropout.stream)) {
  if (dropout.p == 0) return;
  first_row = first_sample * dropout.rows_per_sample;
  if (dropout.rows) rows = dropout.rows.as<const int64_t>();
  threshold = static_cast<uint32_t>(std::llround(static_cast<double>(dropout.p) * 0x1p32));
  scale = 1 / (1 - dropout.p);
}

}  // namespace cinta
