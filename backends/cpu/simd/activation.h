// Activations whose formula or slope takes more than a line. gelu: Hendrycks, Gimpel 2016. silu: Elfwing et al. 2017.
#pragma once
#include "cinta/backends/cpu/simd/math.h"

#include "cinta/backends/cpu/isa_begin.h"

/// x times the probability below x. At m = |x|, the tail's share is e^(-m^2/2) times m e^(m^2/2) erfc(m/sqrt(2)) / 2,
/// which stays between 0.2 and 0.4 and is taken as a polynomial in (m - 1.5) / (m + 3.1): most of it is a constant.
inline float gelu_value(float x) {
  const float m = 14.5f < std::fabs(x) ? 14.5f : std::fabs(x), u = (m - 1.5f) / (m + 3.1f);
  const float share = math::polynomial(u, 0.308670998f, 0.32371916f, -0.469589161f, 0.337445993f, -0.0901020245f,
                                       -0.0334721526f, 0.0198072625f, 0.00801170927f, -0.00559218259f);
  const float far = (x > 0 ? x : 0) - math::bell(m).times(share);
  const float near = x * (0.5f + x * math::polynomial(x * x, 0.39894228f, -0.0664903654f, 0.00997323066f,
                                                      -0.00118478209f, 0.000107261754f));
  return math::select(m < 0.6f, near, far);
}
inline float gelu_slope(float x) {
  const auto [below, density] = math::normal(x);
  return below + x * density;
}

// x/2 (1 + tanh(u/2)) is x * logistic(u); u and its slope:
constexpr float gelu_tanh_inner(float x) { return 1.59576912f * (x + 0.044715f * x * x * x); }
constexpr float gelu_tanh_inner_slope(float x) { return 1.59576912f * (1 + 0.134145f * x * x); }
/// The inner value in double: e raised to it is as wrong as it is in units of 1, not of itself.
inline float gelu_tanh_value(float x) {
  const float m = 14.5f < std::fabs(x) ? 14.5f : std::fabs(x);
  const double wide = m, inner = -1.5957691216057308 * (wide + 0.044715 * wide * wide * wide);
  const float rounded = static_cast<float>(inner);
  const math::Scaled e = math::exp_parts(rounded, static_cast<float>(inner - rounded));
  const float all = x > 0 ? x : -e.times(m), part = x > 0 ? m : all;
  return x == 0 ? x : all - part * (e.value() / (1 + e.value()));
}
inline float gelu_tanh_slope(float x) {
  x = 14.5f < x ? 14.5f : -14.5f > x ? -14.5f : x;  // beyond, it is 1 or 0
  const auto [value, slope] = math::logistic(gelu_tanh_inner(x));
  return value + x * slope * gelu_tanh_inner_slope(x);
}

inline float silu_value(float x) { return x * math::sigmoid(x); }
inline float silu_slope(float x) {
  const auto [value, slope] = math::logistic(x);
  return value + x * slope;
}

inline float softplus_value(float x) { return math::select(x > 20, x, math::log1p(math::exp(x))); }

inline float relu_value(float x) { return x < 0 ? 0 : x; }
inline float relu_slope(float x_or_y) { return x_or_y > 0 ? 1 : 0; }
inline float tanh_slope(float y) { return 1 - y * y; }

#include "cinta/backends/cpu/isa_end.h"
