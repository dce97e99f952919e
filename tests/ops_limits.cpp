// What ops do at the limits of sizes, of types and of memory that is shared.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

#include "cinta/data/loader.h"
#include "cinta/ops/attention.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"

using namespace cinta;

namespace {

constexpr int64_t huge = std::numeric_limits<int64_t>::max();
constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();

Tensor list(const std::vector<float>& values) { return from_values(values, {static_cast<int64_t>(values.size())}); }

struct NoBatches : data::BatchSource {
  data::Batch batch(int64_t) const override { return {}; }
};

}  // namespace

TEST_CASE("sizes that are negative or overflow are refused", "[ops]") {
  const Tensor x = list({1, 2, 3, 4, 5, 6}), one = list({1}), nothing = empty({0});
  CHECK_THROWS_AS(reshape(x, {-2, -3}), ShapeError);
  CHECK_THROWS_AS(reshape(nothing, {int64_t{1} << 32, int64_t{1} << 32}), ShapeError);
  CHECK_THROWS_AS(expand(one, {-5}), ShapeError);
  CHECK_THROWS_AS(expand(one, {int64_t{1} << 40, int64_t{1} << 40}), ShapeError);
  CHECK_THROWS_AS(pad(x, 0, huge, 0), ShapeError);
  CHECK_THROWS_AS(pad(x, 0, huge, huge), ShapeError);
  CHECK_THROWS_AS(data::Prefetcher(NoBatches(), 0, 0), ValueError);
}

TEST_CASE("writing in place reads what was there before, and writes each element once", "[ops]") {
  const Tensor x = from_values<float>({0, 1, 2, 3}, {2, 2}), one = list({1}), four = list({1, 2, 3, 4});
  copy_(x, transpose(x, 0, 1));
  CHECK(to_vector<float>(x) == std::vector<float>{0, 2, 1, 3});
  add_(x, transpose(x, 0, 1));
  CHECK(to_vector<float>(x) == std::vector<float>{0, 3, 3, 6});
  CHECK_THROWS_AS(copy_(expand(one, {4}), four), ShapeError);
  CHECK_THROWS_AS(add_(expand(one, {4}), four), ShapeError);
  CHECK_THROWS_AS(scale_(expand(one, {4}), 2), ShapeError);
}

TEST_CASE("results stay exact at the ends of the types", "[ops]") {
  CHECK(item(mean(full({100000}, 1, Dtype::f16))) == 1);
  const std::vector<float> signs = [] {
    std::vector<float> out(1000, 10);
    for (size_t i = 0; i < out.size(); i += 2) out[i] = -10;
    return out;
  }();
  CHECK(item(var(cast(list(signs), Dtype::f16))) == 100.125);  // 1000 * 100 / 999, to 11 bits
  CHECK(var(cast(list(signs), Dtype::bf16)).dtype() == Dtype::bf16);
  const Tensor wide = from_values<double>({1e300, 1e300}, {2}, reference);
  CHECK(item(logsumexp(wide)) == 1e300);
  const std::vector<float> losses =
      to_vector<float>(bce_with_logits(list({10, 20, -10, -20}), list({1, 1, 0, 0}), Reduction::none));
  for (size_t i = 0; i < losses.size(); ++i)
    CHECK(losses[i] == Approx(std::log1p(std::exp(i % 2 ? -20.0 : -10.0))).epsilon(1e-6));
}

TEST_CASE("NaN is the largest of all, wherever it stands", "[ops]") {
  for (const Device device : {cpu, reference}) {
    const Tensor rows = from_values<float>({none, 1, infinity, 1, none, infinity, 2, none, none}, {3, 3}, device);
    CHECK(to_vector<int64_t>(argmax(rows, {-1})) == std::vector<int64_t>{0, 1, 1});
  }
}

TEST_CASE("offsets that leave out, go back or go beyond are refused", "[ops]") {
  const Tensor q = full({1, 1, 4, 2}, 1.0);
  for (const std::vector<int32_t>& bounds : {std::vector{1, 3}, std::vector{0, 3, 2}, std::vector{0, 5}}) {
    const Tensor offsets = from_values(bounds, {static_cast<int64_t>(bounds.size())});
    CHECK_THROWS_AS(attention(q, q, q, {.offsets = offsets}), ValueError);
  }
}
