// The elements of stored bytes as numbers: any type to double, and double to any floating-point type.
#pragma once
#include <cstdint>
#include <span>

#include "cinta/core/dtype.h"

namespace cinta::data {

/// Elements [first, first + out.size()) of `bytes` as doubles, exactly (beyond 2^53 an i64 is rounded).
void widen(Dtype dtype, const void* bytes, int64_t first, std::span<double> out);

/// Writes `values` as elements [first, first + values.size()) of `bytes`, of a floating-point type: each becomes the
/// nearest number of the type, of two equally near ones that with an even last digit, in one rounding. What is too
/// large becomes infinite where the type has infinities.
void narrow(std::span<const double> values, Dtype dtype, void* bytes, int64_t first);

}  // namespace cinta::data
