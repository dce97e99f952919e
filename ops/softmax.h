// Softmax and its logarithm.
#pragma once
#include "cinta/core/tensor.h"

namespace cinta {

/// exp(x) / sum(exp(x)) along `dim`. A row of -inf only gives NaN. Throws ShapeError for a tensor without dimensions.
Tensor softmax(const Tensor& x, int dim = -1, Where where = Where::current());
/// x - logsumexp(x) along `dim`.
Tensor log_softmax(const Tensor& x, int dim = -1, Where where = Where::current());

}  // namespace cinta
