// Which storage types the CPU's kernels take.
#pragma once
#include "cinta/core/view.h"

namespace cinta {

/// Throws DtypeError unless `view` is absent or holds floats of at most 32 bits.
void require_narrow(const View& view);

}  // namespace cinta
