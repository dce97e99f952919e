// Activations whose formula or slope takes more than a line. gelu: Hendrycks, Gimpel 2016. silu: Elfwing et al. 2017.
#pragma once
#include "cinta/backends/cpu/simd/math.h"

#include "cinta/backends/cpu/isa_begin.h"

inline float gelu_value(float x) { return x * math::normal(x).below; }
inline float gelu_slope(float x) {
  const auto [below, density] = math::normal(x);
  return below + x * density;
}

// x/2 (1 + tanh(u/2)) is x * logistic(u); u and its slope:
constexpr float gelu_tanh_inner(float x) { return 1.59576912f * (x + 0.044715f * x * x * x); }
constexpr float gelu_tanh_inner_slope(float x) { return 1.59576912f * (1 + 0.134145f * x * x); }
inline float gelu_tanh_value(float x) { return x * math::sigmoid(gelu_tanh_inner(x)); }
inline float gelu_tanh_slope(float x) {
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
