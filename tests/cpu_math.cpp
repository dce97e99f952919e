// How exact the CPU's own elementary functions are: every 4099th float there is, and all kinds of special values,
// against the library's double functions. Measured through the rows, so at the instruction set that this machine chose.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/backends/kernels/softmax.h"
#include "cinta/core/float_formats.h"
#include "cinta/ops/shape.h"

using namespace cinta;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(),
                not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Floats spread evenly over all bit patterns: as many in each power of two.
const std::vector<float>& inputs() {
  static const std::vector<float> values = [] {
    std::vector<float> out;
    for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4099)
      out.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    for (float special : {0.0f, 1.0f, 0x1p-126f, 0x1p-149f, 0x1.fffffep127f, 88.72283f, 88.72284f, 103.97f, 104.0f,
                          0.625f, 9.0f, 14.0f, 17.0f, 20.0f, infinity, not_a_number})
      out.insert(out.end(), {special, -special});
    return out;
  }();
  return values;
}

View view_of(std::vector<float>& values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  return {values.data(), shape, contiguous_strides(shape), Dtype::f32, true};
}

/// The distance of `got` from `exact` in units of the last place that a float near `exact` has.
double ulps(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : infinity;
  const double largest = std::numeric_limits<float>::max(), rounded = static_cast<float>(exact);
  if (got == rounded) return 0;
  if (!std::isfinite(got)) return std::abs(exact) >= largest && (got > 0) == (exact > 0) ? 1 : infinity;
  const int exponent = std::max(std::ilogb(exact == 0 ? 0x1p-149 : exact), -126);
  return std::abs(got - exact) / std::ldexp(1, exponent - 23);
}

/// The largest distance over these inputs, and NaN wherever they are NaN.
double worst(const kernels::UnaryRow& row, double (*exact)(double), std::vector<float> x,
             kernels::Scalars scalars = {}) {
  std::vector<float> y(x.size());
  row.forward(cpu, view_of(y), view_of(x), scalars);
  double most = 0;
  float at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double distance = ulps(y[i], exact(x[i]));
    if (distance > most) most = distance, at = x[i];
  }
  std::printf("  %-10s %8.3f ulp at most (at %.9g), %zu inputs\n", row.forward.name(), most, at, x.size());
  return most;
}

/// The same over those of inputs() in [low, high].
double worst(const kernels::UnaryRow& row, double (*exact)(double), float low = -infinity, float high = infinity,
             kernels::Scalars scalars = {}) {
  std::vector<float> x;
  for (float value : inputs())
    if (std::isnan(value) || (value >= low && value <= high)) x.push_back(value);
  return worst(row, exact, std::move(x), scalars);
}

/// Every float from `low` to `high`, which have one sign.
std::vector<float> every_float(float low, float high) {
  std::vector<float> out{low};
  while (out.back() != high) out.push_back(std::nextafter(out.back(), high));
  return out;
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double gelu(double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; }
double gelu_tanh(double x) { return x * logistic(2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)); }

}  // namespace

TEST_CASE("exponentials and logarithms", "[cpu_math]") {
  CHECK(worst(kernels::exp, std::exp) <= 1);
  CHECK(worst(kernels::log, std::log) <= 1);
  CHECK(worst(kernels::elu, std::expm1, -infinity, 0, {1, 0}) <= 2);
  CHECK(worst(
            kernels::softplus, [](double x) { return std::log1p(std::exp(x)); }, -infinity, 20) <= 2);
}

TEST_CASE("sigmoids", "[cpu_math]") {
  CHECK(worst(kernels::sigmoid, logistic) <= 2.5);  // the exponential, a sum and a quotient
  CHECK(worst(kernels::tanh, std::tanh) <= 2);
  CHECK(worst(kernels::erf, std::erf) <= 2);
}

TEST_CASE("the sign of zero stays where the curve goes through it", "[cpu_math]") {
  for (const auto* row : {&kernels::tanh, &kernels::elu, &kernels::erf, &kernels::gelu, &kernels::gelu_tanh,
                          &kernels::silu, &kernels::leaky_relu, &kernels::sqrt})
    for (const Device device : {cpu, reference})
      for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
        for (const double zero : {0.0, -0.0}) {
          INFO(row->forward.name() << " in " << name_of(dtype) << " of " << zero);
          const Tensor x = full({67}, zero, dtype, device), y = empty_like(x);
          row->forward(device, y, x, {1, 0});
          for (const float value : to_vector<float>(y))
            CHECK((value == 0 && std::signbit(value) == std::signbit(zero)));
        }
}

TEST_CASE("the slope of erf far from 0", "[cpu_math]") {
  std::vector<float> x{10.3f, -11, 1e3f, -1.24e5f, 6e20f, 3e38f, float{infinity}, -float{infinity}, NAN};
  std::vector<float> slope(x.size()), ones(x.size(), 1);
  kernels::erf.backward(cpu, view_of(slope), view_of(ones), view_of(x), {});
  for (size_t i = 0; i + 1 < x.size(); ++i) CHECK((slope[i] >= 0 && slope[i] < 1e-45f + 2 * std::exp(-100.0f)));
  CHECK(std::isnan(slope.back()));
}

TEST_CASE("a number that fills a narrow tensor is rounded once", "[cpu_math]") {
  CHECK(item(cast(full({1}, -1.1250000020954758, Dtype::f8e5m2), Dtype::f32)) == -1.25);
  CHECK(std::isnan(item(cast(full({1}, NAN, Dtype::bf16), Dtype::f32))));
}

TEST_CASE("smooth rectifiers", "[cpu_math]") {
  CHECK(worst(
            kernels::silu, [](double x) { return x * logistic(x); }, -80, infinity) <= 3);
  CHECK(worst(kernels::gelu, gelu, -13, infinity) <= 2);
  CHECK(worst(kernels::gelu_tanh, gelu_tanh, -9.5, infinity) <= 2);
  // Where a search of all floats found the least exact ones: 1.92 and 1.97 ulp without FMA; 1.62 and 1.74.
  for (const auto& [low, high] : {std::pair{-0.61f, -0.59f}, {-0.82f, -0.79f}, {-2.51f, -2.49f}, {-12.6f, -12.5f}})
    CHECK(worst(kernels::gelu, gelu, every_float(low, high)) <= 2);
  for (const auto& [low, high] : {std::pair{-0.0038f, -0.0037f}, {-0.33f, -0.325f}, {-1.4f, -1.37f}})
    CHECK(worst(kernels::gelu_tanh, gelu_tanh, every_float(low, high)) <= 2);
  std::vector<float> far{-14, -20, -1e38f, 0, -0.0f}, y(far.size());
  for (const kernels::UnaryRow* row : {&kernels::gelu, &kernels::gelu_tanh}) {
    row->forward(cpu, view_of(y), view_of(far), {});
    for (size_t i = 0; i < far.size(); ++i) CHECK((std::abs(y[i]) < 1e-40f && (far[i] < -1 || y[i] == far[i])));
    CHECK(std::signbit(y.back()));
    CHECK(std::signbit(y[1]));  // as the limit has it
    std::vector<float> ones(far.size(), 1);
    row->backward(cpu, view_of(y), view_of(ones), view_of(far), {});
    for (size_t i = 0; i < 3; ++i) CHECK(std::abs(y[i]) < 1e-38f);
    CHECK((y[3] == 0.5f && y[4] == 0.5f));
    std::vector<float> rare{not_a_number, -not_a_number, infinity, -infinity, 1};
    row->backward(cpu, view_of(y), view_of(ones), view_of(rare), {});
    CHECK((std::isnan(y[0]) && std::isnan(y[1]) && y[2] == 1 && y[3] == 0));
  }
}

// A minute; run where its tag is asked for alone.
TEST_CASE("smooth rectifiers of every float", "[.every_float]") {
  for (float low = 0x1p-34f; low < 16; low *= 2)
    for (const float sign : {1.0f, -1.0f}) {
      const auto from = [&](float furthest) { return every_float(sign * low, sign * std::min(2 * low, furthest)); };
      if (sign > 0 || low < 13) CHECK(worst(kernels::gelu, gelu, from(sign > 0 ? 16 : 13)) <= 2);
      if (sign > 0 || low < 9.5f) CHECK(worst(kernels::gelu_tanh, gelu_tanh, from(sign > 0 ? 16 : 9.5f)) <= 2);
    }
}

// A layer's gelu takes a shorter way to 16 bits than to 32. Of the slope's two terms, which cancel below -0.7, each is
// as exact.
TEST_CASE("gelu in 16 bits is the exact one, rounded", "[cpu_math]") {
  std::vector<float> x;
  for (float value : inputs())
    if (value >= -12.5f && value <= 1e38f && std::abs(value) >= 1e-36f) x.push_back(value);
  const auto count = static_cast<int64_t>(x.size());
  std::vector<bf16> y(x.size()), slope(x.size());
  const auto rows = [&](void* data, Dtype dtype) { return View{data, {1, count}, {count, 1}, dtype, true}; };
  kernels::activation(cpu, rows(y.data(), Dtype::bf16), rows(slope.data(), Dtype::bf16), rows(x.data(), Dtype::f32),
                      kernels::Activation::gelu);
  constexpr double half_ulp = 0x1p-8, error = 2e-5;
  double worst_value = 0, worst_slope = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = x[i], below = std::erfc(-at / std::sqrt(2.0)) / 2,
                 density = at * std::exp(-at * at / 2) / 2.5066282746;
    worst_value = std::max(worst_value, std::abs(static_cast<float>(y[i]) / (at * below) - 1));
    worst_slope = std::max(worst_slope, (std::abs(static_cast<float>(slope[i]) - (below + density)) -
                                         half_ulp * std::abs(below + density)) /
                                            (below + std::abs(density)));
  }
  CHECK(worst_value <= half_ulp + error);
  CHECK(worst_slope <= error);
}

TEMPLATE_TEST_CASE("a layer's gelu and its slope of no ordinary numbers", "[cpu_math]", float, bf16) {
  const auto activation = GENERATE(kernels::Activation::gelu, kernels::Activation::gelu_tanh);
  CAPTURE(static_cast<int>(activation));
  std::vector<float> special{infinity, -infinity, not_a_number, 0, -0.0f, 1e30f, -1e30f, -not_a_number};
  const auto count = static_cast<int64_t>(special.size());
  special.resize(37, 1);  // whole vectors, and what is left
  for (size_t i = 16; i < 16 + static_cast<size_t>(count); ++i) special[i] = special[i - 16];
  std::vector<TestType> out(special.size()), rise(special.size());
  const auto row = [&](void* data, Dtype dtype) { return View{data, {1, 37}, {37, 1}, dtype, true}; };
  kernels::activation(cpu, row(out.data(), dtype_of<TestType>()), row(rise.data(), dtype_of<TestType>()),
                      row(special.data(), Dtype::f32), activation);
  for (size_t i : {0, 16}) {
    const auto value = [&](size_t at) { return static_cast<float>(out[i + at]); };
    const auto slope = [&](size_t at) { return static_cast<float>(rise[i + at]); };
    CHECK((value(0) == infinity && value(1) == 0 && std::isnan(value(2)) && value(3) == 0 && value(4) == 0));
    CHECK((std::isnan(value(7)) && std::isnan(slope(7))));
    CHECK((value(5) == static_cast<float>(TestType(1e30f)) && value(6) == 0));
    CHECK((slope(0) == 1 && slope(1) == 0 && std::isnan(slope(2)) && slope(3) == 0.5f && slope(4) == 0.5f));
    CHECK((slope(5) == 1 && slope(6) == 0));
  }
}

// The loss of logits in 16 bits takes a shorter exponential: its gradient is e^(x - lse) where the label is another.
TEST_CASE("exponentials in 16 bits are the exact ones, rounded", "[cpu_math]") {
  constexpr int64_t rows = 100, columns = 2000;
  std::vector<bf16> x(rows * columns), dx(rows * columns);
  std::vector<float> lse(rows), parts, ones(rows, 1);
  std::vector<int64_t> labels(rows, 0);
  for (size_t i = 0; i < x.size(); ++i) x[i] = bf16(-80 + 120 * static_cast<float>(i % columns) / columns);
  for (size_t r = 0; r < lse.size(); ++r) {
    lse[r] = 0.0123f * static_cast<float>(r);
    parts.insert(parts.end(), {0, lse[r]});
  }
  const auto matrix = [](auto& data) { return View{data.data(), {rows, columns}, {columns, 1}, Dtype::bf16, true}; };
  const auto column = [](auto& data, Dtype dtype) { return View{data.data(), {rows}, {1}, dtype, true}; };
  const View halves{parts.data(), {rows, 2}, {2, 1}, Dtype::f32, true};
  kernels::cross_entropy_backward(cpu, matrix(dx), column(ones, Dtype::f32), matrix(x), halves,
                                  column(labels, Dtype::i64), {});
  double worst = 0;  // error beyond half a unit of the last place
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % columns == 0) continue;
    const double exact = std::exp(double{static_cast<float>(x[i])} - lse[i / columns]),
                 half_ulp = std::ldexp(1, std::ilogb(exact) - 8);
    worst = std::max(worst, (std::abs(static_cast<float>(dx[i]) - exact) - half_ulp) / exact);
  }
  std::printf("  in 16 bits, beyond rounding: %.2g\n", worst);
  CHECK(worst <= 5e-6);

  // A gradient in 32 bits is as exact as those are, whatever the logits have.
  std::vector<float> wide(x.size());
  View whole = matrix(wide);
  whole.dtype = Dtype::f32;
  kernels::cross_entropy_backward(cpu, whole, column(ones, Dtype::f32), matrix(x), halves, column(labels, Dtype::i64),
                                  {});
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % columns == 0) continue;
    const float shifted = static_cast<float>(x[i]) - lse[i / columns];
    most = std::max(most, std::abs(wide[i] / std::exp(double{shifted}) - 1));
  }
  CHECK(most <= 0x1p-22);
}

TEST_CASE("roots", "[cpu_math]") {
  CHECK(worst(kernels::sqrt, std::sqrt) == 0);
  CHECK(worst(kernels::rsqrt, [](double x) { return 1 / std::sqrt(x); }) <= 1.5);  // two roundings
}
