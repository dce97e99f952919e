// What each floating-point format can hold: for tables, plots of exponents, limits of a histogram.
#pragma once
#include <array>
#include <string_view>
#include <type_traits>

#include "cinta/core/float_formats.h"

namespace cinta {

/// The limits of a format. A normal value is (1 + m / 2^mantissa_bits) 2^e with least_exponent <= e <= top_exponent.
struct FormatFacts {
  std::string_view name;
  int exponent_bits, mantissa_bits, bias, top_exponent, least_exponent;
  double largest, smallest_normal, smallest_subnormal;
  int infinities, nans;  ///< codes that mean one, of either sign
  bool negative_zero;
  Overflow overflow;  ///< unless told otherwise
};

template <class Bits, int E, int M, int Bias, Specials S, Overflow Usual>
constexpr FormatFacts facts_of(std::string_view name, std::type_identity<NarrowFloat<Bits, E, M, Bias, S, Usual>>) {
  const auto power_of_two = [](int exponent) {
    double value = 1;
    for (; exponent < 0; ++exponent) value /= 2;
    return value;
  };
  using Format = NarrowFloat<Bits, E, M, Bias, S, Usual>;
  const bool ieee = S == Specials::ieee;
  return {.name = name,
          .exponent_bits = E,
          .mantissa_bits = M,
          .bias = Bias,
          .top_exponent = (1 << E) - (ieee ? 2 : 1) - Bias,
          .least_exponent = 1 - Bias,
          .largest = Format::decode(Format::max_code),
          .smallest_normal = power_of_two(1 - Bias),
          .smallest_subnormal = power_of_two(1 - Bias - M),
          .infinities = ieee ? 2 : 0,
          .nans = ieee                      ? 2 * ((1 << M) - 1)
                  : S == Specials::nan_only ? 2
                                            : 1,
          .negative_zero = S != Specials::fnuz,
          .overflow = Usual};
}

template <class Format>
constexpr FormatFacts facts_of(std::string_view name) {
  return facts_of(name, std::type_identity<Format>());
}

/// From the widest to the narrowest.
inline constexpr std::array<FormatFacts, 8> float_formats{
    facts_of<NarrowFloat<uint32_t, 8, 23, 127, Specials::ieee, Overflow::special>>("f32"),
    facts_of<tf32>("tf32"),
    facts_of<bf16>("bf16"),
    facts_of<f16>("f16"),
    facts_of<f8e4m3>("f8e4m3"),
    facts_of<f8e5m2>("f8e5m2"),
    facts_of<f8e4m3fnuz>("f8e4m3fnuz"),
    facts_of<f8e5m2fnuz>("f8e5m2fnuz")};

}  // namespace cinta
