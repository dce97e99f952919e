// Random masks. Every word is Philox(seed, stream, step, element): see core/random.h.
#pragma once
#include "cinta/backends/kernel.h"

namespace cinta::kernels {

/// What a dropout site draws from. Element number = (first_sample * rows_per_sample + row) * row length + column, where
/// rows are all leading dimensions together, so that a mask survives recomputation and any split of the batch. Where
/// `rows` is given, row r counts as rows[r]: some rows of a whole are masked as they would be among all.
/// An element is kept iff its word >= round(p * 2^32), and kept elements are scaled by 1 / (1 - p).
struct Dropout {
  View state;                   ///< i64[3] on the device: seed, step, first_sample; absent iff p is 0
  uint32_t stream = 0;          ///< the site's own stream
  float p = 0;                  ///< probability of dropping, in [0, 1)
  int64_t rows_per_sample = 1;  ///< of the whole, where `rows` is given
  View rows = {};               ///< i64, contiguous, one for each row; absent: 0, 1, 2 .. (attention knows no other)
};

/// y = x masked and scaled, and y_too, which may be absent, is y cast to another type; its own backward (dx from dy).
/// y may be x. Last dimension contiguous.
inline constinit Kernel<void(View y, View y_too, View x, Dropout)> dropout{"dropout"};

}  // namespace cinta::kernels
