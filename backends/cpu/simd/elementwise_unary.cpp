// Unary rows: a formula and its slope. An activation is added by one line here.
#include <cmath>

#include "cinta/backends/cpu/simd/activation.h"
#include "cinta/backends/cpu/simd/elementwise.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

using S = Numbers;
const InstallUnary affine{kernels::affine,
                          unary([](auto x, auto s) { return s.a * x + s.b; }, [](auto, auto s) { return s.a; })};
const InstallUnary divide_by{kernels::divide_by,
                             unary([](auto x, auto s) { return x / s.a; }, [](auto, auto s) { return 1 / s.a; })};
const InstallUnary divide_into{
    kernels::divide_into, unary([](auto x, auto s) { return s.a / x; }, [](auto x, auto s) { return -s.a / x / x; })};
const InstallUnary exp{kernels::exp, unary([](float x, S) { return math::exp(x); }, [](float y, S) { return y; })};
const InstallUnary log{kernels::log, unary([](float x, S) { return math::log(x); }, [](float x, S) { return 1 / x; })};
const InstallUnary sqrt{kernels::sqrt,
                        unary([](float x, S) { return std::sqrt(x); }, [](float y, S) { return 0.5f / y; })};
const InstallUnary rsqrt{
    kernels::rsqrt, unary([](float x, S) { return 1 / std::sqrt(x); }, [](float y, S) { return -0.5f * y * y * y; })};
const InstallUnary pow{kernels::pow, unary([](float x, S s) { return std::pow(x, s.a); },
                                           [](float x, S s) { return s.a == 0 ? 0 : s.a * std::pow(x, s.a - 1); })};
const InstallUnary power_of{kernels::power_of, unary([](float x, S s) { return std::pow(s.a, x); },
                                                     [](float y, S s) {
                                                       return s.a != 0 ? y * std::log(s.a) : y > 1 ? -INFINITY : 0.0f;
                                                     })};
const InstallUnary abs{kernels::abs, unary([](float x, S) { return std::fabs(x); },
                                           [](float x, S) { return x > 0   ? 1.0f
                                                                   : x < 0 ? -1.0f
                                                                           : 0.0f; })};
const InstallUnary clamp{kernels::clamp, unary([](float x, S s) { return x < s.a   ? s.a
                                                                         : x > s.b ? s.b
                                                                                   : x; },
                                               [](float x, S s) { return x >= s.a && x <= s.b ? 1.0f : 0.0f; })};
const InstallUnary erf{kernels::erf, unary([](float x, S) { return math::erf(x); },
                                           [](float x, S) { return 1.12837917f * math::gauss(x); })};
const InstallUnary relu{kernels::relu,
                        unary([](float x, S) { return relu_value(x); }, [](float y, S) { return relu_slope(y); })};
const InstallUnary leaky_relu{kernels::leaky_relu, unary([](float x, S s) { return x > 0 ? x : s.a * x; },
                                                         [](float x, S s) { return x > 0 ? 1 : s.a; })};
const InstallUnary gelu{kernels::gelu, unary([](float x, S) { return gelu_curve(x).value; },
                                             [](float x, S) { return gelu_curve(x).slope; })};
const InstallUnary gelu_tanh{kernels::gelu_tanh, unary([](float x, S) { return gelu_tanh_curve(x).value; },
                                                       [](float x, S) { return gelu_tanh_curve(x).slope; })};
const InstallUnary silu{kernels::silu, unary([](float x, S) { return silu_curve(x).value; },
                                             [](float x, S) { return silu_curve(x).slope; })};
const InstallUnary tanh{kernels::tanh,
                        unary([](float x, S) { return math::tanh(x); }, [](float y, S) { return tanh_slope(y); })};
const InstallUnary sigmoid{kernels::sigmoid,
                           unary([](float x, S) { return math::sigmoid(x); }, [](float y, S) { return y * (1 - y); })};
const InstallUnary softplus{kernels::softplus, unary([](float x, S) { return softplus_value(x); },
                                                     [](float x, S) { return x > 20 ? 1 : math::sigmoid(x); })};
const InstallUnary elu{kernels::elu, unary([](float x, S s) { return x < 0 ? s.a * math::expm1(x) : x; },
                                           [](float x, S s) { return x > 0 ? 1 : s.a * math::exp(x); })};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
