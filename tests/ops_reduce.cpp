// Rows of the op table: reductions.
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/ops/elementwise.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "op_table.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

using In = const Operands&;

const Input x = real({batch, 4, 5}), whole_x = real({3, 4, 5});

const OpTable table({
    {"sum", {x}, [](In x) { return sum(x[0]); }},
    {"sum",
     {x},
     [](In x) {
       return sum(x[0], {0, -1});
     },
     "two dimensions"},
    {"sum", {x}, [](In x) { return sum(x[0], {1}, true); }, "kept"},
    {"mean", {whole_x}, [](In x) { return mean(x[0]); }},
    {"mean", {x}, [](In x) { return mean(x[0], {1}); }, "one dimension"},
    {"var", {whole_x}, [](In x) { return var(x[0]); }},
    {"var", {x}, [](In x) { return var(x[0], {-1}, 0, true); }, "kept"},
    {"max", {whole_x}, [](In x) { return max(x[0]); }},
    {"max",
     {x},
     [](In x) {
       return max(x[0], {1, 2});
     },
     "two dimensions"},
    OpCase("argmax", {x}, [](In x) { return argmax(x[0], {1}); }).untracked(),
    OpCase(
        "argmax", {x}, [](In x) { return argmax(x[0], {-1}, true); }, "kept")
        .untracked(),
    OpCase(
        "argmax", {whole_x}, [](In x) { return argmax(x[0]); }, "all")
        .untracked(),
    OpCase(
        "argmax", {x},
        [](In x) {
          return argmax(x[0], {-1, 1}, true);
        },
        "two dimensions")
        .untracked(),
    OpCase(
        "argmax", {whole_x},
        [](In x) {
          return argmax(x[0], {0, 2});
        },
        "apart")
        .untracked(),
    OpCase("logsumexp", {whole_x}, [](In x) { return logsumexp(x[0]); }).composed([](In x) {
      return log(sum(exp(x[0])));
    }),
    {"logsumexp", {x}, [](In x) { return logsumexp(x[0], {1}, true); }, "kept"},
    {"sum_to",
     {x},
     [](In x) {
       return sum_to(x[0], {4, 1});
     }},
});

}  // namespace

TEST_CASE("reductions", "[ops]") { check_ops(); }

TEST_CASE("a sum of very many equal numbers does not drift", "[ops]") {
  for (const int64_t count : {100'000, 1'000'000}) {
    const double want = static_cast<double>(0.1f) * static_cast<double>(count);
    for (const Tensor& x : {full({count}, 0.1), full({1000, count / 1000}, 0.1)}) {
      CHECK(std::abs(item(sum(x)) / want - 1) < 5e-7);
      CHECK(std::abs(item(mean(x)) / static_cast<double>(0.1f) - 1) < 5e-7);
    }
  }
}

TEST_CASE("argmax counts row-major through the reduced dimensions", "[ops]") {
  using Positions = std::vector<int64_t>;
  const auto positions = [](const Tensor& x) { return to_vector<int64_t>(x); };
  const Tensor x = from_values<float>({1, 7, 2, 8, 3, 5, /**/ 9, 4, 9, 0, 9, 6}, {2, 3, 2});
  CHECK(positions(argmax(x)) == Positions{6});
  CHECK(positions(argmax(x, {0, 1, 2})) == Positions{6});
  CHECK(positions(argmax(x, {1, 2})) == Positions{3, 0});
  CHECK(positions(argmax(x, {0, 2})) == Positions{2, 2, 2});
  CHECK(positions(argmax(x, {-1, 0})) == positions(argmax(x, {0, 2})));  // the order of the list means nothing
  CHECK(positions(argmax(x, {0, 1})) == Positions{3, 1});
  CHECK(positions(argmax(transpose(x, 0, 2), {0, 1})) == Positions{4, 0});

  CHECK(argmax(x, {0, 2}).shape() == Shape{3});
  CHECK(argmax(x, {0, 2}, true).shape() == Shape{1, 3, 1});
  CHECK(argmax(x, {}, true).shape() == Shape{1, 1, 1});
  CHECK(positions(argmax(full({}, 3))) == Positions{0});
  CHECK(argmax(zeros({0, 3, 2}), {1, 2}).shape() == Shape{0});  // no results, so none without elements
}

TEST_CASE("argmax finds the first of equals, and NaN before all", "[ops]") {
  const auto first = [](std::vector<float> values) { return item(argmax(from_values<float>(values, {2, 2}))); };
  CHECK(first({1, 5, 5, 5}) == 1);
  CHECK(first({-INFINITY, -INFINITY, -INFINITY, -INFINITY}) == 0);
  CHECK(first({1, INFINITY, NAN, NAN}) == 2);
  CHECK(first({NAN, INFINITY, 1, 2}) == 0);
}
