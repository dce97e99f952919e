// A call of a kernel row, kept to be made again: what a captured step is made of.
#pragma once
#include "cinta/core/callback.h"

namespace cinta {

/// A call of a row that can be made again, with the same operands.
struct KeptCall {
  Callback<void()> make;
  bool reports;  ///< it writes bad data down in a status record (core/context.h)
};

}  // namespace cinta
