// A batch of tokens on its way from the host to a BERT.
#pragma once
#include "cinta/data/loader.h"
#include "cinta/models/bert/encoder.h"

namespace cinta::train {

/// The tokens of `batch`, padded or packed (data/packing.h), on `device`.
models::TokenBatch token_batch(const data::Batch& batch, Device device);

}  // namespace cinta::train
