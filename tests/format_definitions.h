// The narrow formats as their definitions state them, for tests to hold the library's conversions against.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cinta/core/float_formats.h"

namespace cinta::testing {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

enum class Top { ieee, nan_at_all_ones, nan_at_minus_zero };

/// A format as its definition states it.
struct Format {
  int exponent_bits, mantissa_bits, bias;
  Top top;
  bool saturates;
  int bits() const { return 1 + exponent_bits + mantissa_bits; }
};
inline const Format half{5, 10, 15, Top::ieee, false}, brain{8, 7, 127, Top::ieee, false};
inline const Format e4m3{4, 3, 7, Top::nan_at_all_ones, true}, e5m2{5, 2, 15, Top::ieee, true};
inline const Format e4m3fnuz{4, 3, 8, Top::nan_at_minus_zero, true}, e5m2fnuz{5, 2, 16, Top::nan_at_minus_zero, true};

/// Calls f.operator()<T>(name, definition) for each narrow format.
template <class F>
void each_format(F f) {
  f.template operator()<f16>("f16", half);
  f.template operator()<bf16>("bf16", brain);
  f.template operator()<f8e4m3>("f8e4m3", e4m3);
  f.template operator()<f8e5m2>("f8e5m2", e5m2);
  f.template operator()<f8e4m3fnuz>("f8e4m3fnuz", e4m3fnuz);
  f.template operator()<f8e5m2fnuz>("f8e5m2fnuz", e5m2fnuz);
}

inline double value_of(const Format& f, unsigned code) {
  const unsigned sign = code >> (f.bits() - 1), exponent = (code >> f.mantissa_bits) & ((1u << f.exponent_bits) - 1);
  const unsigned mantissa = code & ((1u << f.mantissa_bits) - 1);
  const unsigned top = (1u << f.exponent_bits) - 1, all = (1u << f.mantissa_bits) - 1;
  if (f.top == Top::ieee && exponent == top) return mantissa ? NAN : sign ? -infinity : infinity;
  if (f.top == Top::nan_at_all_ones && exponent == top && mantissa == all) return NAN;
  if (f.top == Top::nan_at_minus_zero && sign && !exponent && !mantissa) return NAN;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits)
                                         : std::ldexp((1u << f.mantissa_bits) + mantissa,
                                                      static_cast<int>(exponent) - f.bias - f.mantissa_bits);
  return sign ? -magnitude : magnitude;
}

/// The finite values that are not negative, in order, which is also the order of their codes.
inline std::vector<double> ladder(const Format& f) {
  std::vector<double> values;
  for (unsigned code = 0; code < 1u << (f.bits() - 1); ++code)
    if (const double value = value_of(f, code); std::isfinite(value)) values.push_back(value);
  return values;
}

/// Nearest, ties to the even code, by searching the ladder; one step above its top is the overflow threshold.
inline double nearest(const Format& f, const std::vector<double>& steps, double value, bool saturates) {
  if (std::isnan(value)) return NAN;
  const double magnitude = std::abs(value), top = steps.back(), step = top - steps[steps.size() - 2];
  double rounded;
  if (magnitude >= top) {
    const double limit = top + step / 2;  // a tie there goes to the code after the top one, if that is even
    const bool stays = magnitude < limit || (magnitude == limit && steps.size() % 2 == 1);
    rounded = stays || saturates ? top : f.top == Top::ieee ? infinity : NAN;
  } else {
    const size_t above = static_cast<size_t>(std::upper_bound(steps.begin(), steps.end(), magnitude) - steps.begin());
    const double low = steps[above - 1], high = steps[above];
    const bool up = magnitude - low != high - magnitude ? magnitude - low > high - magnitude : above % 2 == 0;
    rounded = up ? high : low;
  }
  return std::signbit(value) ? -rounded : rounded;
}

}  // namespace cinta::testing
