// Random words, and the mask that dropout, the fused norm and attention share.
#pragma once
#include "cinta/backends/kernels/random.h"
#include "cinta/backends/reference/element.h"
#include "cinta/core/random.h"

namespace cinta::oracle {

/// The random word of element `element` of a tensor whose samples have this many elements, counted from the first
/// sample that the state {seed, step, first_sample} names.
inline uint32_t word(const View& state, uint32_t stream, int64_t elements_per_sample, int64_t element) {
  const int64_t seed = at(state, 0).integer(), step = at(state, 1).integer(), first_sample = at(state, 2).integer();
  return random_word(static_cast<uint64_t>(seed), stream, static_cast<uint32_t>(step),
                     static_cast<uint64_t>(first_sample * elements_per_sample + element));
}

/// What dropout multiplies an element by: 0, or 1 / (1 - p) for one that is kept.
inline double mask(const kernels::Dropout& dropout, int64_t row, int64_t column, int64_t columns) {
  if (dropout.p == 0) return 1;
  const double p = dropout.p;
  if (dropout.rows) row = at(dropout.rows, row).integer();
  const uint32_t drawn = word(dropout.state, dropout.stream, dropout.rows_per_sample * columns, row * columns + column);
  return drawn >= std::round(p * 0x1p32) ? 1 / (1 - p) : 0;
}

}  // namespace cinta::oracle
