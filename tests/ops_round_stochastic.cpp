// Stochastic rounding of tensors: its mean is the number, and what the word of an element depends on.
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/backends/threads.h"
#include "cinta/core/random.h"
#include "cinta/ops/round.h"
#include "cinta/ops/shape.h"
#include "format_definitions.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

using Values = std::vector<double>;

/// Row-major, as numbers.
Values values_of(const Tensor& y) { return to_vector<double>(y); }

Tensor numbers(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random_normal(9, 1, 0, i));
  return from_values(values, shape);
}

}  // namespace

TEST_CASE("the mean of a stochastic rounding is the number", "[ops][round]") {
  const Random random(3);
  each_format([&]<class T>(const char* name, const Format& f) {
    const std::vector<double> steps = ladder(f);
    constexpr int64_t count = 40000;
    for (size_t i : {size_t{0}, size_t{2}, steps.size() / 2, steps.size() - 2})
      for (double part : {0.0625, 0.3125, 0.5}) {  // f32 holds the values that follow
        const double value = steps[i] + part * (steps[i + 1] - steps[i]);
        const RoundOptions options{.rounding = Rounding::stochastic, .random = random.site(name)};
        double sum = 0;
        for (double found : to_vector<double>(round_to(full({100, count / 100}, -value), dtype_of<T>(), options)))
          sum -= found;
        const double error = (steps[i + 1] - steps[i]) * std::sqrt(part * (1 - part) / count);
        INFO(name << " " << value << ": mean " << sum / count << ", standard error " << error);
        CHECK(std::abs(sum / count - value) <= 4 * error);
      }
  });
}

TEST_CASE("a word belongs to an element: strides, the other elements and threads do not matter", "[ops][round]") {
  const Random random(5);
  const RoundOptions options{.rounding = Rounding::stochastic, .random = random.site("weights")};
  const Tensor x = numbers({70, 900});
  const int outer_threads = threads();
  each_format([&]<class T>(const char* name, const Format&) {
    INFO(name);
    const Dtype dtype = dtype_of<T>();
    const Values values = values_of(round_to(x, dtype, options));
    for (const Tensor& same : {transpose(contiguous(transpose(x, 0, 1)), 0, 1), slice(concat({x, x}, 1), 1, 900, 1800),
                               reshape(x, {7, 10, 900})})
      CHECK(values_of(round_to(same, dtype, options)) == values);
    const Tensor turned = transpose(x, 0, 1);
    CHECK(values_of(round_to(turned, dtype, options)) == values_of(round_to(contiguous(turned), dtype, options)));
    const Values first = values_of(round_to(slice(x, 0, 0, 7), dtype, options));
    CHECK(first == Values(values.begin(), values.begin() + 7 * 900));
    for (int count : {1, 2, 3, 7}) {
      set_threads(count);
      CHECK(values_of(round_to(x, dtype, options)) == values);
    }
    set_threads(outer_threads);
  });
}

TEST_CASE("words follow from seed, site, step and, where asked, the first sample", "[ops][round]") {
  const Tensor x = numbers({6, 5, 7});
  const auto run = [&](const Random& random, const char* site, const Tensor& x, bool samples) {
    return to_vector<float>(round_to(
        x, Dtype::f8e4m3, {.rounding = Rounding::stochastic, .random = random.site(site), .samples = samples}));
  };
  Random random(5);
  const std::vector<float> found = run(random, "a", x, false);
  CHECK(found == run(random, "a", x, true));
  CHECK(found != run(random, "b", x, false));
  CHECK(found != run(Random(6), "a", x, false));
  random.set_first_sample(4);
  CHECK(found == run(random, "a", x, false));
  CHECK(run(random, "a", slice(x, 0, 4, 6), true) == std::vector<float>(found.begin() + 4 * 35, found.end()));
  random.set_first_sample(0);
  random.set_step(1);
  CHECK(found != run(random, "a", x, false));
}
