// Conversion element by element; visit() takes the type out of the loops.
#include "cinta/data/elements.h"

#include <bit>
#include <cmath>
#include <type_traits>

namespace cinta::data {
namespace {

/// `value` rounded to the float beside it whose last digit is odd, unless it is a float itself. A narrower type then
/// rounds as if from `value`: the odd digit keeps what lies between two of its numbers off the middle.
float round_to_odd(double value) {
  const float near = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(near) == value) return near;
  uint32_t bits = std::bit_cast<uint32_t>(near);
  if (std::abs(static_cast<double>(near)) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1);
}

}  // namespace

void widen(Dtype dtype, const void* bytes, int64_t first, std::span<double> out) {
  visit(dtype, [&]<class T>() {
    const T* from = static_cast<const T*>(bytes) + first;
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(from[i]);
  });
}

void narrow(std::span<const double> values, Dtype dtype, void* bytes, int64_t first) {
  require<DtypeError>(is_floating(dtype), "narrow", Where(), "a floating-point type, given ", dtype);
  visit(dtype, [&]<class T>() {
    T* to = static_cast<T*>(bytes) + first;
    for (size_t i = 0; i < values.size(); ++i)
      if constexpr (std::is_arithmetic_v<T>)
        to[i] = static_cast<T>(values[i]);
      else
        to[i] = T(round_to_odd(values[i]));
  });
}

}  // namespace cinta::data
