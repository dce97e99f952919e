// Rows of the op table: arithmetic, functions of one tensor, comparisons.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "cinta/autograd/tape.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "op_table.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

using In = const Operands&;

const Input x = real({batch, 2, 5}), same = real({batch, 2, 5}), column = real({2, 1}), one = real({}),
            positive = real({batch, 2, 5}, 0.5, 3);

const OpTable table({
    {"add", {x, same}, [](In x) { return add(x[0], x[1]); }},
    {"add", {x, column}, [](In x) { return add(x[0], x[1]); }, "broadcast"},
    {"add", {one, x}, [](In x) { return add(x[0], x[1]); }, "scalar"},
    {"subtract", {x, same}, [](In x) { return subtract(x[0], x[1]); }},
    {"subtract", {column, x}, [](In x) { return subtract(x[0], x[1]); }, "broadcast"},
    {"multiply", {x, same}, [](In x) { return multiply(x[0], x[1]); }},
    {"multiply", {x, column}, [](In x) { return multiply(x[0], x[1]); }, "broadcast"},
    {"multiply", {x}, [](In x) { return multiply(x[0], x[0]); }, "by itself"},
    {"divide", {x, positive}, [](In x) { return divide(x[0], x[1]); }},
    {"divide", {column, positive}, [](In x) { return divide(x[0], x[1]); }, "broadcast"},
    {"add", {x}, [](In x) { return add(0.3, add(x[0], 2)); }, "numbers"},
    {"subtract", {x}, [](In x) { return subtract(0.3, subtract(x[0], 2)); }, "numbers"},
    {"multiply", {x}, [](In x) { return multiply(0.3, multiply(x[0], -2)); }, "numbers"},
    {"divide", {x}, [](In x) { return divide(x[0], -0.3); }, "number"},
    {"divide", {positive}, [](In x) { return divide(-0.3, x[0]); }, "into a number"},
    {"affine", {x}, [](In x) { return affine(x[0], -1.5, 0.25); }},
    {"operator+", {x, same}, [](In x) { return 0.25 + (x[0] + x[1]) + 0.5; }},
    {"operator-", {x, same}, [](In x) { return 1 - (-x[0] - x[1]) - 0.5; }},
    {"operator*", {x, same}, [](In x) { return (2 * x[0]) * (x[1] * 0.5); }},
    {"operator/", {x, positive}, [](In x) { return 3 / (x[0] / 2 / x[1] + 4.0); }},

    {"exp", {x}, [](In x) { return exp(x[0]); }},
    {"log", {positive}, [](In x) { return log(x[0]); }},
    {"sqrt", {positive}, [](In x) { return sqrt(x[0]); }},
    {"rsqrt", {positive}, [](In x) { return rsqrt(x[0]); }},
    {"pow", {positive}, [](In x) { return pow(x[0], 1.7); }},
    {"pow", {x}, [](In x) { return pow(x[0], 3); }, "whole"},
    {"pow", {x}, [](In x) { return pow(x[0], 0); }, "zero"},
    {"pow", {positive, same}, [](In x) { return pow(x[0], x[1]); }, "tensors"},
    {"pow", {real({2, 1}, 0.5, 3), x}, [](In x) { return pow(x[0], x[1]); }, "broadcast base"},
    {"pow", {positive, one}, [](In x) { return pow(x[0], x[1]); }, "scalar exponent"},
    {"pow", {positive}, [](In x) { return pow(x[0], x[0]); }, "of itself"},
    {"pow", {x}, [](In x) { return pow(1.5, x[0]); }, "of a number"},
    {"pow", {x}, [](In x) { return pow(x[0], full({5}, 3, x[0].dtype(), x[0].device())); }, "whole tensor"},
    {"abs", {x}, [](In x) { return abs(x[0]); }},
    {"erf", {x}, [](In x) { return erf(x[0]); }},
    {"clamp", {x}, [](In x) { return clamp(x[0], -1, 1.2); }},

    OpCase("equal", {x, column}, [](In x) { return equal(x[0], x[1]); }).untracked(),
    OpCase("equal", {whole({batch, 7}, 0, 3), whole({7}, 0, 3)}, [](In x) { return equal(x[0], x[1]); }).untracked(),
    OpCase("not_equal", {whole({batch, 7}, 0, 3), whole({}, 1, 2)}, [](In x) { return not_equal(x[0], x[1]); })
        .untracked(),
    OpCase("less", {x, column}, [](In x) { return less(x[0], x[1]); }).untracked(),
    OpCase("less_equal", {x, column}, [](In x) { return less_equal(x[0], x[1]); }).untracked(),
    OpCase("greater", {x, column}, [](In x) { return greater(x[0], x[1]); }).untracked(),
    OpCase("greater_equal", {x, column}, [](In x) { return greater_equal(x[0], x[1]); }).untracked(),
    {"where",
     {whole({batch, 2, 5}, 0, 2, Dtype::boolean), x, column},
     [](In x) { return cinta::where(x[0], x[1], x[2]); }},
    OpCase(
        "equal", {whole({batch, 7}, 0, 3)}, [](In x) { return equal(x[0], 1); }, "number")
        .untracked(),
    OpCase(
        "not_equal", {whole({batch, 7}, 0, 3)}, [](In x) { return not_equal(1, x[0]); }, "number")
        .untracked(),
    OpCase(
        "less", {x}, [](In x) { return less(x[0], 0.3); }, "number")
        .untracked(),
    OpCase(
        "less_equal", {x}, [](In x) { return less_equal(0.3, x[0]); }, "number")
        .untracked(),
    OpCase(
        "greater", {x}, [](In x) { return greater(x[0], 0); }, "number")
        .untracked(),
    OpCase(
        "greater_equal", {x}, [](In x) { return greater_equal(0.3, x[0]); }, "number")
        .untracked(),
    {"where",
     {whole({batch, 2, 5}, 0, 2, Dtype::boolean), x},
     [](In x) { return cinta::where(x[0], x[1], 0.5) + cinta::where(x[0], -1, x[1]); },
     "numbers"},
    {"where",
     {whole({2, 1}, 0, 2, Dtype::boolean), one, x},
     [](In x) { return cinta::where(x[0], x[1], x[2]); },
     "broadcast"},
});

}  // namespace

TEST_CASE("elementwise ops", "[ops]") { check_ops(); }

TEST_CASE("a number divides exactly, and is not rounded to the type of what it meets", "[ops]") {
  for (Device device : {cpu, reference})
    for (int i = 1; i < 200; ++i) {
      CHECK(item(full({}, i, Dtype::f32, device) / i) == 1);  // i * (1 / i) is not, for 41 among others
      CHECK(item(i / full({}, i, Dtype::f32, device)) == 1);
    }
  const double n = 1.00390625;  // halfway between 1 and the next bf16, and rounded to 1 there
  CHECK(item(full({}, 1, Dtype::bf16) / n) == 0.99609375);
  CHECK(item(pow(n, full({}, 10, Dtype::bf16))) == 1.0390625);
  CHECK(item(n / full({}, 0.875, Dtype::bf16)) == 1.1484375);  // 1 / 0.875 would give 1.140625
}

TEST_CASE("a number is compared as what it is", "[ops]") {
  const auto bits = [](const Tensor& x) { return to_vector<int32_t>(x); };
  using Bits = std::vector<int32_t>;
  for (Device device : {cpu, reference}) {
    const Tensor i = from_values<int64_t>({-1, 0, 1}, {3}, device), u = from_values<uint8_t>({0, 1, 255}, {3}, device);
    CHECK(bits(less(i, 0.5)) == Bits{1, 1, 0});
    CHECK(bits(greater(-0.5, i)) == Bits{1, 0, 0});
    CHECK(bits(equal(u, 256)) == Bits{0, 0, 0});
    CHECK(bits(greater(u, -1)) == Bits{1, 1, 1});
    CHECK(bits(equal(not_equal(i, 0), 1)) == Bits{1, 0, 1});
    for (Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
      CHECK(bits(equal(full({1}, 0.1, dtype, device), 0.1)) == Bits{1});
    CHECK(bits(less(from_values<float>({NAN, INFINITY}, {2}, device), INFINITY)) == Bits{0, 0});
    CHECK(bits(not_equal(from_values<float>({NAN, 0}, {2}, device), 0)) == Bits{1, 0});
  }
}

TEST_CASE("a number by a tensor keeps the sign of zero", "[ops]") {
  for (Device device : {cpu, reference}) {
    const Tensor zeros = from_values<float>({0, -0.0f}, {2}, device);
    for (const Tensor& y : {-zeros, zeros * -1.0, -1.0 * zeros}) {
      CHECK(std::signbit(to_vector<float>(y)[0]));
      CHECK_FALSE(std::signbit(to_vector<float>(y)[1]));
    }
  }
}

TEST_CASE("powers at the edges, with their gradients", "[ops]") {
  struct Edge {
    double base, exponent, value, base_gradient, exponent_gradient;  // as PyTorch 2 gives them
  };
  const double inf = INFINITY, nan = NAN;
  const auto same = [](double got, double want) { return got == want || (std::isnan(got) && std::isnan(want)); };
  for (Device device : {cpu, reference})
    for (const Edge& edge :
         {Edge{0, 0, 1, 0, 0}, Edge{0, 1, 0, 1, 0}, Edge{0, 2, 0, 0, 0}, Edge{0, -1, inf, -inf, -inf},
          Edge{-2, 3, -8, 12, nan}, Edge{-2, 0, 1, 0, nan}, Edge{-2, 0.5, nan, nan, nan}, Edge{nan, 0, 1, 0, nan},
          Edge{1, nan, 1, nan, 0}, Edge{inf, 0, 1, 0, inf}, Edge{inf, -1, 0, -0.0, nan}, Edge{0.5, inf, 0, nan, 0}}) {
      INFO(edge.base << "^" << edge.exponent << " on " << name_of(device));
      Tensor base = full({}, edge.base, Dtype::f32, device), exponent = full({}, edge.exponent, Dtype::f32, device);
      const std::vector<Tensor> leaves{autograd::require_gradient(base), autograd::require_gradient(exponent)};
      const Tensor y = pow(base, exponent);
      const std::vector<Tensor> gradients = autograd::grad({y}, leaves);
      CHECK(same(item(y), edge.value));
      CHECK(same(item(gradients[0]), edge.base_gradient));
      CHECK(same(item(gradients[1]), edge.exponent_gradient));
      const Tensor of_number = pow(edge.base, exponent);
      CHECK(same(item(of_number), edge.value));
      CHECK(same(item(autograd::grad({of_number}, {exponent})[0]), edge.exponent_gradient));
    }
}

TEST_CASE("a power of 0 has second gradients", "[ops]") {
  Tensor x = from_values<float>({0, 0, 0, 2}, {4});
  autograd::require_gradient(x);
  const Tensor exponent = from_values<float>({0, 1, 2, 0}, {4});
  const Tensor first = autograd::grad({sum(pow(x, exponent))}, {x}, {.create_graph = true})[0];
  CHECK(to_vector<float>(first) == std::vector<float>{0, 1, 0, 0});
  CHECK(to_vector<float>(autograd::grad({sum(first)}, {x})[0]) == std::vector<float>{0, 0, 2, 0});
}

TEST_CASE("integers are compared as integers", "[ops]") {
  constexpr int64_t high = int64_t{1} << 53, last = std::numeric_limits<int64_t>::max();
  using Bits = std::vector<int32_t>;
  const auto bits = [](const Tensor& x) { return to_vector<int32_t>(x); };
  for (Device device : {cpu, reference}) {
    const Tensor a = from_values<int64_t>({high, high + 1, last, -last - 1, 7}, {5}, device),
                 b = from_values<int64_t>({high + 1, high, last - 1, -last, 7}, {5}, device);
    CHECK(bits(equal(a, b)) == Bits{0, 0, 0, 0, 1});
    CHECK(bits(not_equal(a, b)) == Bits{1, 1, 1, 1, 0});
    CHECK(bits(less(a, b)) == Bits{1, 0, 0, 1, 0});
    CHECK(bits(less_equal(a, b)) == Bits{1, 0, 0, 1, 1});
    CHECK(bits(greater(a, b)) == Bits{0, 1, 1, 0, 0});
    CHECK(bits(greater_equal(a, b)) == Bits{0, 1, 1, 0, 1});
    const Tensor last_three = slice(b, 0, 2, 5), columns = reshape(last_three, {3, 1});
    CHECK(bits(equal(columns, last_three)) == Bits{1, 0, 0, 0, 1, 0, 0, 0, 1});
  }
}
