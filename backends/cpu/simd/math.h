// Elementary functions on float as straight-line code, so that loops over them vectorise (the library's do not).
// Within 2 ulp, sigmoid 2.5; infinities, NaN, subnormals and large arguments give what the mathematics says.
// Polynomials are least-maximum fits of the function named beside them. Fits and limits are measured by
// tests/cpu_math.cpp.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "cinta/backends/cpu/isa_begin.h"
namespace math {

inline constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

/// condition ? a : b without a branch. Of a branch the compiler would follow each side to the end of the function, and
/// every lane would compute both, with the subnormal numbers that only the rare side meets.
inline float select(bool condition, float a, float b) {
  const uint32_t mask = -static_cast<uint32_t>(condition);
  return std::bit_cast<float>((std::bit_cast<uint32_t>(a) & mask) | (std::bit_cast<uint32_t>(b) & ~mask));
}

/// The smaller of two whose signs are clear, and of NaN the other one: as integers, since of a comparison of floats the
/// compiler would follow both sides, as above.
inline float least(float a, float b) {
  return std::bit_cast<float>(std::min(std::bit_cast<int32_t>(a), std::bit_cast<int32_t>(b)));
}

/// c0 + c1 x + c2 x^2 + ..
inline float polynomial(float, float c0) { return c0; }
template <class... More>
inline float polynomial(float x, float c0, More... more) {
  return c0 + x * polynomial(x, more...);
}

inline constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;  // ln 2; n * ln2_high is exact

/// A number near x as n ln 2 + r with |r| <= ln(2)/2.
struct Reduced {
  int32_t n;
  float r;
};
/// Of x, first brought into [-104, 89], beyond which exp is 0 or infinite.
inline Reduced reduce(float x) {
  constexpr float round = 0x1.8p23f;  // adding it pushes the fraction out
  x = select(x < -104, -104, x);
  x = select(x > 89, 89, x);
  const float shifted = x * 1.44269504f + round, n = shifted - round;
  return {std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(round), x - n * ln2_high - n * ln2_low};
}

/// 2^n, for -126 <= n <= 127.
inline float power_of_two(int32_t n) { return std::bit_cast<float>((n + 127) << 23); }

/// (e^r - 1 - r) / r^2
inline float exp_rest(float r) {
  return polynomial(r, 0.499999931f, 0.166665148f, 0.0416684568f, 0.00836941883f, 0.00138131445f);
}

inline float exp(float x) {
  const auto [n, r] = reduce(x);
  const float mantissa = 1 + (r + r * r * exp_rest(r));
  return mantissa * power_of_two(n >> 1) * power_of_two(n - (n >> 1));  // in two steps: 2^n itself may not exist
}
/// A number as power * (1 + rest) * 2^-64.
struct Scaled {
  float power, rest;
  float value() const { return (power + power * rest) * 0x1p-64f; }
  /// x + low times the number, rounded once less, where low is much smaller than x.
  float times(float x, float low) const { return power * (x + (x * rest + low)) * 0x1p-64f; }
};
/// e^(x + low) for -120 <= x <= 44, where low is much smaller than x: half the work of exp, since 2^(n + 64) always
/// exists.
inline Scaled exp_parts_within(float x, float low) {
  constexpr float round = 0x1.8p23f + 127 + 64;  // leaves n + 64 in the low bits as an exponent
  const float shifted = x * 1.44269504f + round, n = shifted - round;
  const float r = (x - n * ln2_high) - (n * ln2_low - low);
  return {std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) << 23), r + r * r * exp_rest(r)};
}
/// The same for x <= 44: below -120, e^x is 0, even times a number; NaN stays.
inline Scaled exp_parts(float x, float low) { return exp_parts_within(-120 > x ? -120 : x, low); }
inline float exp_below(float x) { return exp_parts(x, 0).value(); }

/// 2^x for -174 <= x <= 63, where the coefficients give 2^f for |f| <= 1/2. 2^-64 in them lets 2^(n + 64) always exist.
template <class... Floats>
inline float exp2_by(float x, Floats... coefficients) {
  constexpr float round = 0x1.8p23f + 127 + 64;
  const float shifted = x + round, f = x - (shifted - round);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) << 23) * polynomial(f, (coefficients * 0x1p-64f)...);
}
/// 2^x within 3e-6 of itself, and 1 for 0: for what is stored in 16 bits.
inline float narrow_exp2(float x) {
  return exp2_by(x, 1.0f, 0.693124175f, 0.240240991f, 0.0559064262f, 0.00958285294f);
}
/// e^x for x <= 44, for results of 16 bits or of more.
template <bool narrow>
inline float exp_below_for(float x) {
  return narrow ? narrow_exp2((-120 > x ? -120 : x) * 1.44269504f) : exp_below(x);
}
/// e^x for x <= 0, within 2e-7 of 1, and 1 of 0: a share that is added to others, of which one is about 1.
inline float exp_share(float x) {
  return exp2_by((-120 > x ? -120 : x) * 1.44269504f, 1.0f, 0.693147004f, 0.240222424f, 0.0555073358f, 0.00967151299f,
                 0.00132647273f);
}

/// e^(-x^2/2) for |x| <= 15, with the square to twice the precision.
inline Scaled bell(float x) {
  const float high = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0xfffff000u);
  return exp_parts_within(-0.5f * high * high, 0.5f * (high - x) * (high + x));
}

/// e^x - 1, for x <= 88.
inline float expm1(float x) {
  const auto [n, r] = reduce(select(x < -30, -30, x));
  const float scale = power_of_two(n);
  return scale * (r + r * r * exp_rest(r)) + (scale - 1);
}

inline float log(float x) {
  const bool subnormal = x < 0x1p-126f;
  constexpr uint32_t half_root = 0x3f3504f3;  // sqrt(1/2): the significand is taken in [sqrt(1/2), sqrt(2))
  const uint32_t above = std::bit_cast<uint32_t>(subnormal ? x * 0x1p25f : x) - half_root;
  const float n = static_cast<float>((static_cast<int32_t>(above) >> 23) - (subnormal ? 25 : 0));
  const float f = std::bit_cast<float>((above & 0x7fffff) + half_root) - 1;
  // log(1+f) = 2 atanh(s) with s = f / (2+f), and 2s = f - s f.
  const float s = f / (2 + f), z = s * s;
  const float rest = z * polynomial(z, 0.666666667f, 0.4f, 0.285714286f, 0.222222222f);
  const float half_square = 0.5f * f * f;
  const float result = n * 0x1.62e4p-1f + (f - (half_square - (s * (half_square + rest) + n * 0x1.7f7d1cp-20f)));
  const float special =
      select(x == 0, -infinity, select(x < 0, nan, x));  // 0, negative; infinity and NaN are their own
  return select((x > 0) & (x < infinity), result, special);
}

/// log(1 + x)
inline float log1p(float x) {
  const float u = 1 + x;
  const float rough = log(u), result = rough + (x - (u - 1)) / u;  // what the sum lost, to first order
  return select((u > 0) & (u < infinity), result, rough);
}

inline float tanh(float x) {
  const float magnitude = std::fabs(x), square = x * x;
  const float near =
      x + x * square * polynomial(square, -0.333332839f, 0.133314913f, -0.0537434971f, 0.0206505843f, -0.00571704194f);
  const float e = exp_below(-2 * magnitude), far = 1 - 2 * e / (1 + e);
  return std::copysign(select(magnitude < 0.625f, near, far), x);  // -0 stays, of which near makes 0
}

/// 1 / (1 + e^-x), accurate on both sides.
inline float sigmoid(float x) {
  const float e = exp_below(-std::fabs(x));
  return select(x < 0, e, 1) / (1 + e);
}
/// The same and its slope.
struct Logistic {
  float value, slope;
};
inline Logistic logistic(float x) {
  const float e = exp_below(-std::fabs(x)), inverse = 1 / (1 + e);
  return {select(x < 0, e, 1) * inverse, e * inverse * inverse};
}

/// e^(-x^2), with the square to twice the precision.
inline float gauss(float x) {
  const float m =
      select(std::fabs(x) > 11, 11, std::fabs(x));  // there it is 0, and what the square has lost still small
  const float high = std::bit_cast<float>(std::bit_cast<uint32_t>(m) & 0xfffff000u);
  return exp_parts(-(high * high), (high - m) * (high + m)).value();
}

/// erfc(t) e^(t^2) for t >= 0, which falls slowly from 1: w P(w - 5/8) with w = 1 / (1 + 0.3 t).
inline float erfc_scaled(float t) {
  const float w = 1 / (1 + 0.3f * t);
  return w * polynomial(w - 0.625f, 0.408633086f, 0.804314585f, 1.25046408f, 1.51793318f, 1.38099043f, 0.83899081f,
                        0.195409305f, -0.162045293f, -0.129546721f);
}

inline float erf(float x) {
  const float magnitude = select(std::fabs(x) > 10, 10, std::fabs(x)), square = x * x;
  const float near = x + x * polynomial(square, 0.128379166f, -0.376126258f, 0.112835851f, -0.0268538119f,
                                        0.00518832768f, -0.000801019358f, 7.85386122e-05f);
  const float far = std::copysign(1 - gauss(magnitude) * erfc_scaled(magnitude), x);
  return select(magnitude < 1, near, far);
}

}  // namespace math
#include "cinta/backends/cpu/isa_end.h"
