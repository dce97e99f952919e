// The mask that dropout, the fused norm and attention share.
#pragma once
#include "cinta/backends/kernels/random.h"
#include "cinta/backends/reference/element.h"
#include "cinta/core/random.h"

namespace cinta::oracle {

/// What dropout multiplies an element by: 0, or 1 / (1 - p) for one that is kept.
inline double mask(const kernels::Dropout& dropout, int64_t row, int64_t column, int64_t columns) {
  if (dropout.p == 0) return 1;
  const double p = dropout.p;
  const int64_t seed = at(dropout.state, 0).integer(), step = at(dropout.state, 1).integer();
  const int64_t first_row = at(dropout.state, 2).integer() * dropout.rows_per_sample;
  const uint32_t word = random_word(static_cast<uint64_t>(seed), dropout.stream, static_cast<uint32_t>(step),
                                    static_cast<uint64_t>((first_row + row) * columns + column));
  return word >= std::round(p * 0x1p32) ? 1 / (1 - p) : 0;
}

}  // namespace cinta::oracle
