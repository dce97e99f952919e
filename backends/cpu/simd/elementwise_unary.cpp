// Unary rows: a formula and its slope. An activation is added by one line here.
#include <cmath>

#include "cinta/backends/cpu/simd/elementwise.h"
#include "cinta/backends/cpu/simd/math.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

// The argument of the logistic function in x * logistic(u) = x/2 (1 + tanh(u/2)), and its slope.
constexpr float inner(float x) { return 1.59576912f * (x + 0.044715f * x * x * x); }
constexpr float inner_slope(float x) { return 1.59576912f * (1 + 0.134145f * x * x); }

inline float gelu_slope(float x) {
  const auto [below, density] = math::normal(x);
  return below + x * density;
}
inline float gelu_tanh_slope(float x) {
  const auto [value, slope] = math::logistic(inner(x));
  return value + x * slope * inner_slope(x);
}
inline float silu_slope(float x) {
  const auto [value, slope] = math::logistic(x);
  return value + x * slope;
}
inline float softplus_value(float x) {
  const float y = math::log1p(math::exp(x));
  return x > 20 ? x : y;
}

// clang-format off
const InstallUnary affine{kernels::affine, unary([](float x, float a, float b) { return a * x + b; }, [](float, float a, float) { return a; })};
const InstallUnary exp{kernels::exp, unary([](float x, float, float) { return math::exp(x); }, [](float y, float, float) { return y; })};
const InstallUnary log{kernels::log, unary([](float x, float, float) { return math::log(x); }, [](float x, float, float) { return 1 / x; })};
const InstallUnary sqrt{kernels::sqrt, unary([](float x, float, float) { return std::sqrt(x); }, [](float y, float, float) { return 0.5f / y; })};
const InstallUnary rsqrt{kernels::rsqrt, unary([](float x, float, float) { return 1 / std::sqrt(x); }, [](float y, float, float) { return -0.5f * y * y * y; })};
const InstallUnary pow{kernels::pow, unary([](float x, float a, float) { return std::pow(x, a); }, [](float x, float a, float) { return a == 0 ? 0 : a * std::pow(x, a - 1); })};
const InstallUnary abs{kernels::abs, unary([](float x, float, float) { return std::fabs(x); }, [](float x, float, float) { return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f; })};
const InstallUnary clamp{kernels::clamp, unary([](float x, float a, float b) { return x < a ? a : x > b ? b : x; }, [](float x, float a, float b) { return x >= a && x <= b ? 1.0f : 0.0f; })};
const InstallUnary erf{kernels::erf, unary([](float x, float, float) { return math::erf(x); }, [](float x, float, float) { return 1.12837917f * math::gauss(x); })};
const InstallUnary relu{kernels::relu, unary([](float x, float, float) { return x < 0 ? 0 : x; }, [](float y, float, float) { return y > 0 ? 1.0f : 0.0f; })};
const InstallUnary leaky_relu{kernels::leaky_relu, unary([](float x, float a, float) { return x > 0 ? x : a * x; }, [](float x, float a, float) { return x > 0 ? 1 : a; })};
const InstallUnary gelu{kernels::gelu, unary([](float x, float, float) { return x * math::normal(x).below; }, [](float x, float, float) { return gelu_slope(x); })};
const InstallUnary gelu_tanh{kernels::gelu_tanh, unary([](float x, float, float) { return x * math::sigmoid(inner(x)); }, [](float x, float, float) { return gelu_tanh_slope(x); })};
const InstallUnary silu{kernels::silu, unary([](float x, float, float) { return x * math::sigmoid(x); }, [](float x, float, float) { return silu_slope(x); })};
const InstallUnary tanh{kernels::tanh, unary([](float x, float, float) { return math::tanh(x); }, [](float y, float, float) { return 1 - y * y; })};
const InstallUnary sigmoid{kernels::sigmoid, unary([](float x, float, float) { return math::sigmoid(x); }, [](float y, float, float) { return y * (1 - y); })};
const InstallUnary softplus{kernels::softplus, unary([](float x, float, float) { return softplus_value(x); }, [](float x, float, float) { return x > 20 ? 1 : math::sigmoid(x); })};
const InstallUnary elu{kernels::elu, unary([](float x, float a, float) { return x > 0 ? x : a * math::expm1(x); }, [](float x, float a, float) { return x > 0 ? 1 : a * math::exp(x); })};
// clang-format on

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
