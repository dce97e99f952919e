// Unary rows: a formula and its slope. An activation is added by one line here.
#include <cmath>

#include "cinta/backends/cpu/simd/activation.h"
#include "cinta/backends/cpu/simd/elementwise.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

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
const InstallUnary relu{kernels::relu, unary([](float x, float, float) { return relu_value(x); }, [](float y, float, float) { return relu_slope(y); })};
const InstallUnary leaky_relu{kernels::leaky_relu, unary([](float x, float a, float) { return x > 0 ? x : a * x; }, [](float x, float a, float) { return x > 0 ? 1 : a; })};
const InstallUnary gelu{kernels::gelu, unary([](float x, float, float) { return gelu_value(x); }, [](float x, float, float) { return gelu_slope(x); })};
const InstallUnary gelu_tanh{kernels::gelu_tanh, unary([](float x, float, float) { return gelu_tanh_value(x); }, [](float x, float, float) { return gelu_tanh_slope(x); })};
const InstallUnary silu{kernels::silu, unary([](float x, float, float) { return silu_value(x); }, [](float x, float, float) { return silu_slope(x); })};
const InstallUnary tanh{kernels::tanh, unary([](float x, float, float) { return math::tanh(x); }, [](float y, float, float) { return tanh_slope(y); })};
const InstallUnary sigmoid{kernels::sigmoid, unary([](float x, float, float) { return math::sigmoid(x); }, [](float y, float, float) { return y * (1 - y); })};
const InstallUnary softplus{kernels::softplus, unary([](float x, float, float) { return softplus_value(x); }, [](float x, float, float) { return x > 20 ? 1 : math::sigmoid(x); })};
const InstallUnary elu{kernels::elu, unary([](float x, float a, float) { return x > 0 ? x : a * math::expm1(x); }, [](float x, float a, float) { return x > 0 ? 1 : a * math::exp(x); })};
// clang-format on

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
