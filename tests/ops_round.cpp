// Rounding to the narrow formats: bit by bit what the formats' own functions give; the gradient; errors.
#include "cinta/ops/round.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/autograd/tape.h"
#include "cinta/core/random.h"
#include "cinta/ops/shape.h"
#include "format_definitions.h"
#include "op_table.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

using In = const Operands&;

/// The gradient is no slope of these steps: it is tried below.
RoundOptions drawn(const Tensor& state) { return {.rounding = Rounding::stochastic, .random = {state, 7}}; }
const OpTable table({
    OpCase("round_to", {real({batch, 4, 6})}, [](In x) { return round_to(detach(x[0]), Dtype::f8e4m3); }).untracked(),
    OpCase(
        "round_to", {real({batch, 4, 6}), random_state()},
        [](In x) { return round_to(detach(x[0]), Dtype::bf16, drawn(x[1])); }, "stochastic")
        .untracked(),
});

/// Zeros, NaN, infinities, both ends of the format with their ties and the neighbours of those, numbers of all sizes.
std::vector<float> trying(const Format& f) {
  const std::vector<double> steps = ladder(f);
  const double last = steps.back() - steps[steps.size() - 2];
  std::vector<float> out;
  const auto add = [&](double value) {
    const auto x = static_cast<float>(value);
    for (float near : {x, std::nextafter(x, 0.0f), std::nextafter(x, INFINITY)}) out.insert(out.end(), {near, -near});
  };
  for (double value : {0.0, double{NAN}, infinity, 1.0}) add(value);
  for (double value : {steps.back(), steps.back() + last / 2, steps.back() + last, 2 * steps.back()}) add(value);
  for (size_t i : {size_t{1}, size_t{2}, size_t{1} << f.mantissa_bits})  // subnormals, the smallest normal
    for (double part : {0.0, 0.5}) add(steps[i - 1] + part * (steps[i] - steps[i - 1]));
  for (uint32_t i = 0; i < 20000; ++i) out.push_back(std::bit_cast<float>(random_word(1, 2, 3, i)));
  for (uint32_t i = 0; i < 20000; ++i)
    out.push_back(static_cast<float>(std::ldexp(random_normal(1, 3, 3, i), static_cast<int>(i % 40) - 24)));
  return out;
}

/// The codes of a tensor of type T, in row-major order.
template <class T>
std::vector<decltype(T::bits)> codes_of(const Tensor& y) {
  std::vector<decltype(T::bits)> out;
  for (T code : y.data<T>()) out.push_back(code.bits);
  return out;
}

}  // namespace

TEST_CASE("rounding ops", "[ops]") { check_ops(); }

TEST_CASE("rounding gives the codes of the formats' own functions, on every backend", "[ops][round]") {
  each_format([]<class T>(const char* name, const Format& f) {
    const Dtype dtype = dtype_of<T>();
    const std::vector<float> values = trying(f);
    const auto count = static_cast<int64_t>(values.size());
    for (Device device : {cpu, reference}) {
      const Tensor x = from_values(values, {count}, device);
      Random random(123456789012345, device);
      random.set_step(7);
      for (std::optional<Overflow> overflow :
           {std::optional<Overflow>(), std::optional(Overflow::saturate), std::optional(Overflow::special)}) {
        INFO(name << " on " << name_of(device) << (overflow ? " overflow " : "")
                  << (overflow ? std::to_string(int(*overflow)) : ""));
        std::vector<decltype(T::bits)> nearest, stochastic;
        for (size_t i = 0; i < values.size(); ++i) {
          const uint32_t word = random_word(123456789012345, stream_id("here"), 7, i);
          nearest.push_back(overflow ? T::encode(values[i], *overflow) : T::encode(values[i]));
          stochastic.push_back(overflow ? T::encode_stochastic(values[i], word, *overflow)
                                        : T::encode_stochastic(values[i], word));
        }
        CHECK((codes_of<T>(round_to(x, dtype, {.overflow = overflow})) == nearest));
        CHECK(
            (codes_of<T>(round_to(
                 x, dtype, {.rounding = Rounding::stochastic, .overflow = overflow, .random = random.site("here")})) ==
             stochastic));
        CHECK(nearest != stochastic);
      }
      CHECK((codes_of<T>(round_to(x, dtype)) == codes_of<T>(cast(x, dtype))));
    }
  });
}

TEST_CASE("an infinity of the format itself saturates where that is asked", "[ops][round]") {
  const Tensor x = cast(from_values(std::vector<float>{INFINITY, -INFINITY, 1}, {3}), Dtype::bf16);
  const float largest = bf16::from_bits(bf16::max_code);
  CHECK(to_vector<float>(round_to(x, Dtype::bf16, {.overflow = Overflow::saturate})) ==
        std::vector<float>{largest, -largest, 1});
  CHECK(to_vector<float>(round_to(x, Dtype::bf16)) == std::vector<float>{INFINITY, -INFINITY, 1});
}

TEST_CASE("rounding is straight through: its gradient is dy in the type of x", "[ops][round]") {
  Random random(5);
  const Tensor weights = from_values(std::vector<float>{1, -2, 0.5, 8}, {2, 2});
  for (Dtype from : {Dtype::f32, Dtype::bf16})
    for (Rounding rounding : {Rounding::nearest, Rounding::stochastic}) {
      Tensor x = cast(from_values(std::vector<float>{1e9f, -0.3f, 0.7f, NAN}, {2, 2}), from);
      autograd::require_gradient(x);
      const Tensor y = round_to(x, Dtype::f8e5m2, {.rounding = rounding, .random = random.site("x")});
      random.set_step(random.state().data<int64_t>()[1] + 1);  // the gradient needs no words
      const Tensor dx = autograd::grad({y}, {x}, {.seeds = {cast(weights, Dtype::f8e5m2)}})[0];
      CHECK(dx.dtype() == from);
      CHECK(to_vector<float>(dx) == to_vector<float>(weights));
    }
}

TEST_CASE("empty tensors and single numbers are rounded", "[ops][round]") {
  const Random random(5);
  const RoundOptions options{.rounding = Rounding::stochastic, .random = random.site("x"), .samples = true};
  for (const Shape& shape : {Shape{0}, Shape{0, 3}, Shape{3, 0}}) {
    const Tensor y = round_to(full(shape, 1), Dtype::f16, options);
    CHECK(y.shape() == shape);
    CHECK(y.dtype() == Dtype::f16);
  }
  CHECK(item(round_to(full({}, 1.5), Dtype::f8e4m3, options)) == 1.5);
}

TEST_CASE("bad calls of rounding say what is asked and what was given", "[ops][round]") {
  const auto fails = [](const std::string& text, auto call) {
    CHECK_THROWS_WITH(call(), Catch::Matchers::StartsWith(text + ", ops_round.cpp:"));
  };
  const Tensor x = full({2, 3}, 1);
  fails("[round_to] x is a floating-point tensor, given i64[3]@cpu",
        [] { round_to(full({3}, 1, Dtype::i64), Dtype::bf16); });
  for (Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::u8})
    fails(join("[round_to] a float of 8 or 16 bits to round to, given ", dtype, " for f32[2,3]@cpu"),
          [&] { round_to(x, dtype); });
  fails("[round_to] stochastic rounding's state is i64[3] {seed, step, first sample}, given (no tensor)",
        [&] { round_to(x, Dtype::bf16, {.rounding = Rounding::stochastic}); });
  fails("[round_to] stochastic rounding's state lies on the device of f32[2,3]@cpu, given i64[3]@reference",
        [&] { round_to(x, Dtype::bf16, drawn(Random(1, reference).state())); });
}
