// Activations whose formula or slope takes more than a line. gelu: Hendrycks, Gimpel 2016. silu: Elfwing et al. 2017.
#pragma once
#include "cinta/backends/cpu/simd/math.h"

#include "cinta/backends/cpu/isa_begin.h"

/// An activation and its slope at a point. Who reads one of the two alone pays for that one.
struct Curve {
  float value, slope;
};

/// x times the probability below x. At m = |x|, the tail's share is e^(-m^2/2) times m e^(m^2/2) erfc(m/sqrt(2)) / 2,
/// which stays between 0.2 and 0.4 and is taken as a polynomial in (m - 1.21875) / (m + 2.75): most of it is a
/// constant, which f32 has almost exactly. Of the sums that are not damped any more, what they lost is added later. The
/// quotient 1 / m is taken at the start: one at the end would come after all of this, and 0.93 to 0.98 of the time is
/// left.
inline Curve gelu_curve(float x) {
  const float magnitude = std::fabs(x), m = math::least(magnitude, 14.5f), u = (m - 1.21875f) / (m + 2.75f),
              inverse = 1 / m;
  constexpr float middle = 0.285503119f;
  const float rise = math::polynomial(u, 0.381019831f, -0.484277755f, 0.256017238f, 0.000358167483f, -0.0471305251f,
                                      -0.00437837048f, 0.0109985797f, 0.00469886791f, -0.00388523261f);
  const float share = middle + u * rise, lost = u * rise - (share - middle);
  const math::Scaled bell = math::bell(m);
  const float cut = bell.times(share, lost), tail = cut * inverse;
  const float near =
      0.5f + x * math::polynomial(x * x, 0.39894228f, -0.0664903654f, 0.00997323066f, -0.00118478209f, 0.000107261754f);
  const bool above = x > 0, close = !(magnitude >= 0.6f);  // or NaN
  const float below = math::select(close, near, math::select(above, 1 - tail, tail));
  return {math::select(close, x * near, math::select(above, x, -0.0f) - cut),
          below + std::copysign(m, x) * (0.39894228f * bell.value())};
}

/// gelu_curve for results that are stored in 16 bits: within 2e-5 of itself, at half the work. e^(m^2/2)
/// erfc(m/sqrt(2)) / 2 is taken as w P(w) with w = 1 / (1 + 0.3 m).
inline Curve narrow_gelu_curve(float x) {
  const float magnitude = std::fabs(x), m = math::least(magnitude, 14.5f),
              bell = math::narrow_exp2(m * m * -0.72134752f);
  const float w = 1 / (1 + 0.3f * m);
  const float tail =
      w * math::polynomial(w, 0.120057411f, 0.113922864f, 0.143473238f, -0.015597323f, 0.214848772f, -0.0767005235f);
  const float cut = m * (bell * tail), rest = bell * (tail - 0.39894228f * m);
  const bool below = x < 0;
  return {math::select(below, -0.0f, x) - cut,
          math::select(magnitude >= 0, math::select(below, rest, 1 - rest), x)};  // NaN stays
}

/// x/2 (1 + tanh(u/2)), which is x * logistic(u), with u = 1.5957.. (x + 0.044715 x^3). The inner value in double: e
/// raised to it is as wrong as it is in units of 1, not of itself. Near 0 logistic(u) - 1/2 is x times a polynomial.
/// What m (1 - share) lost is added later.
inline Curve gelu_tanh_curve(float x) {
  const float magnitude = std::fabs(x), m = math::least(magnitude, 11.25f);  // there u is 119.5 and e^-u 0
  constexpr double factor = 1.5957691216057308;
  const double wide = m, inner = wide * (-factor + -factor * 0.044715 * (wide * wide));
  const float rounded = static_cast<float>(inner);
  const math::Scaled e = math::exp_parts_within(rounded, static_cast<float>(inner - rounded));
  const float power = e.value(), share = power / (1 + power), rest = 1 - share, kept = m - m * share,
              lost = (m - kept) - m * share;
  const float near =
      0.5f + x * math::polynomial(x * x, 0.398942292f, -0.0668198839f, 0.0102054514f, -0.00125631655f, 0.000130216751f);
  const bool above = x > 0, close = !(magnitude >= 0.6f);  // or NaN
  const float inner_slope = 1.59576912f * (1 + 0.134145f * m * m),
              slope = math::select(above, rest, share) + std::copysign(m, x) * (share * rest) * inner_slope;
  return {math::select(close, x * near, math::select(above, x - m * share, -e.times(kept, lost))),
          math::select(magnitude >= 0, slope, x)};
}

inline Curve silu_curve(float x) {
  const auto [value, slope] = math::logistic(x);
  return {x * math::sigmoid(x), value + x * slope};
}

inline float softplus_value(float x) { return math::select(x > 20, x, math::log1p(math::exp(x))); }

inline float relu_value(float x) { return x < 0 ? 0 : x; }
inline float relu_slope(float x_or_y) { return x_or_y > 0 ? 1 : 0; }
inline float tanh_slope(float y) { return 1 - y * y; }
inline Curve tanh_curve(float x) {
  const float y = math::tanh(x);
  return {y, tanh_slope(y)};
}

#include "cinta/backends/cpu/isa_end.h"
