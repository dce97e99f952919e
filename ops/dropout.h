// Dropout (Srivastava et al. 2014), scaled so that the expectation stays.
#pragma once
#include "cinta/ops/random.h"

namespace cinta {

/// x with each element dropped with probability p, the others divided by 1 - p. The mask is not kept: it is made again.
/// Throws DtypeError, and ValueError for p outside [0, 1).
Tensor dropout(const Tensor& x, const DropoutSite& site, Where where = Where::current());

}  // namespace cinta
