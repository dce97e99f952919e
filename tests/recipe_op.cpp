// The recipe "Add an op" of CONTRIBUTING.md, followed: hardswish (Howard et al. 2019), an op that the library does not
// have, made of the recipe's rows and held to all that is promised of an op. The rows are those of the recipe, word for
// word; what stands around them here stands around them in the files that the recipe names. Namespaces of their own let
// the library have a hardswish one day.
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/backends/cpu/simd/activation.h"
#include "cinta/backends/cpu/simd/elementwise.h"
#include "cinta/backends/reference/elementwise.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/shape.h"
#include "cinta/ops/unary.h"
#include "contract/unary.h"
#include "data_helpers.h"
#include "op_table.h"

namespace cinta::recipe::kernels {
using namespace cinta::kernels;

inline constinit UnaryRow hardswish{"hardswish", "hardswish_backward"};  ///< x * relu6(x + 3) / 6

}  // namespace cinta::recipe::kernels

namespace cinta::recipe::oracle {
namespace {
using cinta::oracle::ReferenceUnary;
using S = const kernels::Scalars&;

const ReferenceUnary hardswish{kernels::hardswish,
                               [](double x, S) { return std::abs(x) < 3 ? x * (x + 3) / 6 : std::max(x, 0.0); },
                               [](double x, S) { return std::abs(x) < 3 ? x / 3 + 0.5 : x > 0; }};

}  // namespace
}  // namespace cinta::recipe::oracle

#include "cinta/backends/cpu/isa_begin.h"
namespace recipe {
namespace {
namespace kernels = cinta::recipe::kernels;
using S = Numbers;

const InstallUnary hardswish{kernels::hardswish,
                             unary([](float x, S) { return std::fabs(x) < 3 ? x * (x + 3) / 6 : relu_value(x); },
                                   [](float x, S) { return std::fabs(x) < 3 ? x / 3 + 0.5f : x > 0; })};

}  // namespace
}  // namespace recipe
#include "cinta/backends/cpu/isa_end.h"

namespace cinta::recipe {
namespace {
using kernels::Scalars;

Tensor constant(const Tensor& like, double value) { return full({}, value, like.dtype(), like.device()); }
Tensor choose(const Tensor& x, const Tensor& positive, const Tensor& negative) {
  return cinta::where(greater(x, constant(x, 0)), positive, negative);
}
}  // namespace

Tensor hardswish(const Tensor& x, Where where = Where::current());

Tensor hardswish(const Tensor& x, Where where) {
  auto derivative = [](const Tensor& x, const Tensor&, Scalars) {
    const Tensor outside = choose(x, constant(x, 1), constant(x, 0));
    return cinta::where(less(abs(x), 3), x * (1.0 / 3) + 0.5, outside);
  };
  return unary(kernels::hardswish, x, derivative, {}, where);
}

namespace {

using testing::OpCase;
using testing::real;
using In = const testing::Operands&;

const contract::UnaryTrial contract_rows[] = {
    {&kernels::hardswish, -8, 8},
};
const contract::Contract here{{&kernels::hardswish.forward, &kernels::hardswish.backward},
                              [] { contract::try_everywhere(contract_rows[0]); }};

const testing::Input x = real({testing::batch, 4, 5}, -4, 4);
const OpCase op_rows[] = {
    {"hardswish", {x}, [](In x) { return hardswish(x[0]); }},
};

}  // namespace

TEST_CASE("the op of the recipe is what its formula says", "[recipe]") {
  const Tensor y = hardswish(from_values<float>({-INFINITY, -4, -3, -1.5, 0, 1.5, 3, 4, INFINITY, NAN}, {10}));
  const auto values = to_vector<float>(y);
  CHECK(std::vector(values.begin(), values.end() - 1) == std::vector<float>{0, 0, 0, -0.375, 0, 1.125, 3, 4, INFINITY});
  CHECK(std::isnan(values.back()));
}

TEST_CASE("the rows of the recipe's op keep the contract of a kernel", "[recipe]") { contract::check_contracts(); }

TEST_CASE("the op of the recipe keeps what is promised of an op", "[recipe]") {
  OpCase row = op_rows[0];
  testing::check_op(row);
  testing::check_op(row.composed([](In x) { return x[0] * clamp(x[0] + 3.0, 0, 6) * (1.0 / 6); }));
}

TEST_CASE("a bad call of the recipe's op is an error that says so", "[recipe]") {
  const std::pair<const char*, std::function<Tensor(const Tensor&)>> functions[] = {
      {"hardswish", [](const Tensor& x) { return hardswish(x); }},
  };
  for (const auto& [name, function] : functions)
    for (const Tensor& wrong : {full({2, 3}, 0, Dtype::i64), Tensor()}) {
      const std::string error = testing::error_of<DtypeError>([&] { function(wrong); });
      INFO(error);
      CHECK(error.starts_with(join("[", name, "] x is a floating-point tensor, given ", wrong, ", recipe_op.cpp:")));
    }
}

}  // namespace cinta::recipe
