// Rounding to a narrow format in a way that is chosen: to nearest or at random, with or without infinities. The row
// copy (elementwise.h) rounds in the usual one.
#pragma once
#include "cinta/backends/kernel.h"

namespace cinta::kernels {

/// True for the formats that are rounded to: floats of 8 and 16 bits.
constexpr bool is_narrow(Dtype dtype) { return is_floating(dtype) && size_of(dtype) <= 2; }

/// How numbers are rounded. Element number = first_sample * elements_per_sample + the place of the element in row-major
/// order, whatever the strides; its word is Philox(seed, stream, step, element): see core/random.h.
struct RoundTo {
  Overflow overflow = Overflow::saturate;
  View state;           ///< i64[3] on the device: seed, step, first_sample; absent: to nearest, ties to even
  uint32_t stream = 0;  ///< the site's own stream
  int64_t elements_per_sample = 0;
};

/// y = x in the type of y, which is narrow, as core/float_formats.h encodes floats; f64 becomes an odd float first, to
/// which the same is nearest. Any strides.
inline constinit Kernel<void(View y, View x, RoundTo)> round_to{"round_to"};

/// Calls `f.template operator()<T>()` with the narrow format that stores `dtype`. Throws DtypeError for another type.
template <class F>
void visit_narrow(Dtype dtype, F f) {
  require<DtypeError>(is_narrow(dtype), round_to.name(), Where(), "codes of 8 or 16 bits, given ", dtype);
  visit(dtype, [&]<class T>() {
    if constexpr (!std::is_arithmetic_v<T>) f.template operator()<T>();
  });
}

}  // namespace cinta::kernels
