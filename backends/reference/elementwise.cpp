// Elementwise rows, one element at a time in double.
#include "cinta/backends/reference/elementwise.h"

#include <numbers>

namespace cinta::oracle {
namespace {

using kernels::Scalars;

// The normal distribution, and the argument of tanh in gelu's approximation with its slope.
double normal_cumulative(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }
double normal_density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }
double gelu_inner(double x) { return std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x); }
double gelu_inner_slope(double x) { return std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x); }
double gelu_tanh_slope(double x) {
  const double t = std::tanh(gelu_inner(x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * gelu_inner_slope(x);
}
double logistic(double x) { return 1 / (1 + std::exp(-x)); }

using S = const Scalars&;
const ReferenceUnary affine{kernels::affine, [](double x, S s) { return s.a * x + s.b; },
                            [](double, S s) { return s.a; }};
const ReferenceUnary divide_by{kernels::divide_by, [](double x, S s) { return x / s.a; },
                               [](double, S s) { return 1 / s.a; }};
const ReferenceUnary divide_into{kernels::divide_into, [](double x, S s) { return s.a / x; },
                                 [](double x, S s) { return -s.a / x / x; }};
const ReferenceUnary exp{kernels::exp, [](double x, S) { return std::exp(x); }, [](double y, S) { return y; }};
const ReferenceUnary log{kernels::log, [](double x, S) { return std::log(x); }, [](double x, S) { return 1 / x; }};
const ReferenceUnary sqrt{kernels::sqrt, [](double x, S) { return std::sqrt(x); }, [](double y, S) { return 0.5 / y; }};
const ReferenceUnary rsqrt{kernels::rsqrt, [](double x, S) { return 1 / std::sqrt(x); },
                           [](double y, S) { return -0.5 * y * y * y; }};
const ReferenceUnary pow{kernels::pow, [](double x, S s) { return std::pow(x, s.a); },
                         [](double x, S s) { return s.a == 0 ? 0 : s.a * std::pow(x, s.a - 1); }};
const ReferenceUnary power_of{kernels::power_of, [](double x, S s) { return std::pow(s.a, x); },
                              [](double y, S s) { return s.a != 0 ? y * std::log(s.a)
                                                         : y > 1  ? -INFINITY
                                                                  : 0.0; }};
const ReferenceUnary abs{kernels::abs, [](double x, S) { return std::abs(x); },
                         [](double x, S) { return x > 0   ? 1.0
                                                  : x < 0 ? -1.0
                                                          : 0.0; }};
const ReferenceUnary clamp{kernels::clamp, [](double x, S s) { return x < s.a   ? s.a
                                                                      : x > s.b ? s.b
                                                                                : x; },
                           [](double x, S s) { return x >= s.a && x <= s.b ? 1.0 : 0.0; }};
const ReferenceUnary erf{kernels::erf, [](double x, S) { return std::erf(x); },
                         [](double x, S) { return 2 / std::sqrt(std::numbers::pi) * std::exp(-x * x); }};
const ReferenceUnary relu{kernels::relu, [](double x, S) { return x < 0 ? 0 : x; },
                          [](double y, S) { return y > 0 ? 1.0 : 0.0; }};
const ReferenceUnary leaky_relu{kernels::leaky_relu, [](double x, S s) { return x > 0 ? x : s.a * x; },
                                [](double x, S s) { return x > 0 ? 1 : s.a; }};
const ReferenceUnary gelu{kernels::gelu, [](double x, S) { return x * normal_cumulative(x); },
                          [](double x, S) { return normal_cumulative(x) + x * normal_density(x); }};
const ReferenceUnary gelu_tanh{kernels::gelu_tanh, [](double x, S) { return x / 2 * (1 + std::tanh(gelu_inner(x))); },
                               [](double x, S) { return gelu_tanh_slope(x); }};
const ReferenceUnary silu{kernels::silu, [](double x, S) { return x * logistic(x); },
                          [](double x, S) { return logistic(x) * (1 + x * (1 - logistic(x))); }};
const ReferenceUnary tanh{kernels::tanh, [](double x, S) { return std::tanh(x); },
                          [](double y, S) { return 1 - y * y; }};
const ReferenceUnary sigmoid{kernels::sigmoid, [](double x, S) { return logistic(x); },
                             [](double y, S) { return y * (1 - y); }};
const ReferenceUnary softplus{kernels::softplus, [](double x, S) { return x > 20 ? x : std::log1p(std::exp(x)); },
                              [](double x, S) { return x > 20 ? 1 : logistic(x); }};
const ReferenceUnary elu{kernels::elu, [](double x, S s) { return x > 0 ? x : s.a * std::expm1(x); },
                         [](double x, S s) { return x > 0 ? 1 : s.a * std::exp(x); }};

template <class F>
struct ReferenceBinary {
  ReferenceBinary(kernels::Binary& row, F) {
    row.install(reference, [](View y, View left, View right) {
      for (const Index& i : Indices(y.shape)) at(y, i) = static_cast<double>(F{}(at(left, i), at(right, i)));
    });
  }
};

const ReferenceBinary add{kernels::add, [](double a, double b) { return a + b; }};
const ReferenceBinary subtract{kernels::subtract, [](double a, double b) { return a - b; }};
const ReferenceBinary multiply{kernels::multiply, [](double a, double b) { return a * b; }};
const ReferenceBinary divide{kernels::divide, [](double a, double b) { return a / b; }};
const ReferenceBinary power{kernels::power, [](double a, double b) { return std::pow(a, b); }};

bool integers(View left, View right) { return !is_floating(left.dtype) && !is_floating(right.dtype); }

/// Integers up to 64 bits are compared as such.
template <class F>
struct ReferenceComparison {
  ReferenceComparison(kernels::Binary& row, F) {
    row.install(reference, [](View y, View left, View right) {
      for (const Index& i : Indices(y.shape)) {
        const Element a = at(left, i), b = at(right, i);
        at(y, i) = integers(left, right) ? F{}(a.integer(), b.integer()) : F{}(double{a}, double{b});
      }
    });
  }
};

const ReferenceComparison equal{kernels::equal, [](auto a, auto b) { return a == b; }};
const ReferenceComparison not_equal{kernels::not_equal, [](auto a, auto b) { return a != b; }};
const ReferenceComparison less{kernels::less, [](auto a, auto b) { return a < b; }};
const ReferenceComparison less_equal{kernels::less_equal, [](auto a, auto b) { return a <= b; }};
const ReferenceComparison greater{kernels::greater, [](auto a, auto b) { return a > b; }};
const ReferenceComparison greater_equal{kernels::greater_equal, [](auto a, auto b) { return a >= b; }};

/// y = x, where integers up to 64 bits stay exact.
void assign(const Element& y, const Element& x, bool exact) {
  if (exact)
    y.set_integer(x.integer());
  else
    y = x;
}

void copy_elements(View y, View x) {
  for (const Index& i : Indices(y.shape)) assign(at(y, i), at(x, i), integers(x, y));
}

void select(View y, View condition, View left, View right) {
  for (const Index& i : Indices(y.shape))
    assign(at(y, i), at(condition, i) != 0 ? at(left, i) : at(right, i), !is_floating(y.dtype));
}

void fill_elements(View y, double value) {
  for (const Index& i : Indices(y.shape)) at(y, i) = value;
}

void number_elements(View y, int64_t first, int64_t step) {
  for (int64_t i = 0; i < y.numel(); ++i) y.as<int64_t>()[i] = first + i * step;
}

void accumulate_elements(View y, View x) {
  for (const Index& i : Indices(y.shape)) at(y, i) += at(x, i);
}

const Install copy{kernels::copy, reference, copy_elements};
const Install where{kernels::where, reference, select};
const Install fill{kernels::fill, reference, fill_elements};
const Install arange{kernels::arange, reference, number_elements};
const Install accumulate{kernels::accumulate, reference, accumulate_elements};

}  // namespace
}  // namespace cinta::oracle
