// Elementwise rows. All views of a call have the shape of the output (stride 0 where an operand is broadcast); any
// strides; outputs never overlap inputs unless they are the same view. Computed in f32 or wider, stored in the view's
// type; floating operands may be of several types.
#pragma once
#include "cinta/backends/kernel.h"

namespace cinta::kernels {

/// Numbers a kernel is given beside its views: a slope, a bound, an exponent.
struct Scalars {
  double a = 0, b = 0;
};

/// Which tensor the backward of a unary row reads.
enum class Reads { input, output };

/// y = f(x) and dx = dy * f'(x), where the backward reads x or, if cheaper, y.
struct UnaryRow {
  constexpr UnaryRow(const char* name, const char* backward_name, Reads reads = Reads::input)
      : forward(name), backward(backward_name), reads(reads) {}
  Kernel<void(View y, View x, Scalars)> forward;
  Kernel<void(View dx, View dy, View x_or_y, Scalars)> backward;
  Reads reads;
};

inline constinit UnaryRow affine{"affine", "affine_backward"};                 ///< a*x + b
inline constinit UnaryRow divide_by{"divide_by", "divide_by_backward"};        ///< x / a
inline constinit UnaryRow divide_into{"divide_into", "divide_into_backward"};  ///< a / x
inline constinit UnaryRow exp{"exp", "exp_backward", Reads::output};
inline constinit UnaryRow log{"log", "log_backward"};
inline constinit UnaryRow sqrt{"sqrt", "sqrt_backward", Reads::output};
inline constinit UnaryRow rsqrt{"rsqrt", "rsqrt_backward", Reads::output};
inline constinit UnaryRow pow{"pow", "pow_backward"};                                ///< x^a
inline constinit UnaryRow power_of{"power_of", "power_of_backward", Reads::output};  ///< a^x; slope 0 of 0^0
inline constinit UnaryRow abs{"abs", "abs_backward"};                                ///< slope 0 at 0
inline constinit UnaryRow clamp{"clamp", "clamp_backward"};  ///< to [a, b]; slope 1 at the bounds, NaN stays
inline constinit UnaryRow erf{"erf", "erf_backward"};
inline constinit UnaryRow relu{"relu", "relu_backward", Reads::output};
inline constinit UnaryRow leaky_relu{"leaky_relu", "leaky_relu_backward"};  ///< x > 0 ? x : a*x
inline constinit UnaryRow gelu{"gelu", "gelu_backward"};  ///< x/2 (1 + erf(x/sqrt 2)) (Hendrycks, Gimpel 2016)
inline constinit UnaryRow gelu_tanh{"gelu_tanh", "gelu_tanh_backward"};  ///< its tanh approximation
inline constinit UnaryRow silu{"silu", "silu_backward"};
inline constinit UnaryRow tanh{"tanh", "tanh_backward", Reads::output};
inline constinit UnaryRow sigmoid{"sigmoid", "sigmoid_backward", Reads::output};
inline constinit UnaryRow softplus{"softplus", "softplus_backward"};  ///< log(1 + e^x), linear above 20
inline constinit UnaryRow elu{"elu", "elu_backward"};                 ///< x > 0 ? x : a(e^x - 1)

using Binary = Kernel<void(View y, View left, View right)>;
inline constinit Binary add{"add"};
inline constinit Binary subtract{"subtract"};
inline constinit Binary multiply{"multiply"};
inline constinit Binary divide{"divide"};
inline constinit Binary power{"power"};  ///< left^right
/// Comparisons write bool, of operands of one type or of integers and f64; integers are compared exactly up to 2^53,
/// NaN compares false except in not_equal.
inline constinit Binary equal{"equal"};
inline constinit Binary not_equal{"not_equal"};
inline constinit Binary less{"less"};
inline constinit Binary less_equal{"less_equal"};
inline constinit Binary greater{"greater"};
inline constinit Binary greater_equal{"greater_equal"};

/// y = condition ? left : right; condition is bool.
inline constinit Kernel<void(View y, View condition, View left, View right)> where{"where"};
/// y[i] = first + i * step for i64 y[N], contiguous.
inline constinit Kernel<void(View y, int64_t first, int64_t step)> arange{"arange"};
/// y = value in every element.
inline constinit Kernel<void(View y, double value)> fill{"fill"};
/// y = x converted to y's type (any two storage types); floating to integer truncates, to bool is x != 0.
inline constinit Kernel<void(View y, View x)> copy{"copy"};
/// y += x, added in f32 or wider; x may be of another floating type.
inline constinit Kernel<void(View y, View x)> accumulate{"accumulate"};

}  // namespace cinta::kernels
