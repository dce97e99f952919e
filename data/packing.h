// Samples of different lengths laid end to end, so that no padding is computed on.
#pragma once
#include "cinta/data/loader.h"

namespace cinta::data {

/// A batch of a language model's samples without the padding between them: `ids` and `types` are those of one sample,
/// `rows` point into it, `offsets` say where each begins and `places` where its tokens stand in it. Its end is filled
/// up to the next multiple of `multiple` tokens, so that not every batch has a shape of its own: by default what tiles
/// multiply at once. All else is as before.
/// Throws ValueError for a sample without tokens or longer than the padded ones, for a row of padding, and for a
/// multiple that is not positive or does not fit 32 bits.
Batch packed(const Batch& batch, int64_t multiple = 32);

}  // namespace cinta::data
