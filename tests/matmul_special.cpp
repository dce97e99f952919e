// Products over nothing, with infinities and NaN, and over more narrow numbers than their type could count.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "cinta/backends/captured_step.h"
#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/core/random.h"
#include "cinta/core/tensor.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/shape.h"
#include "product_helpers.h"

using namespace cinta;
using namespace cinta::testing;

namespace {
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
}

TEST_CASE("nothing to sum and nothing to write", "[matmul]") {
  const auto zero_k = [](float old, float beta) {
    const Tensor y = empty({2, 3}), a = empty({2, 0}), b = empty({0, 3});
    kernels::fill(cpu, y, old);
    kernels::matmul(cpu, y, a, b, 1, beta);
    return to_vector<float>(y);
  };
  CHECK(zero_k(not_a_number, 0) == std::vector<float>(6, 0));
  CHECK(zero_k(3, 1) == std::vector<float>(6, 3));
  CHECK(zero_k(3, 0.5f) == std::vector<float>(6, 1.5f));
  kernels::matmul(cpu, empty({0, 3}), empty({0, 4}), empty({4, 3}), 1, 0);
  kernels::matmul(cpu, empty({3, 0}), empty({3, 4}), empty({4, 0}), 1, 0);
  kernels::matmul(cpu, empty({0, 2, 2}), empty({0, 2, 4}), empty({0, 4, 2}), 1, 0);
  const Tensor y = empty({2, 3}), bias = from_values<float>({1, 2, 3}, {3});
  kernels::linear(cpu, y, empty({2, 0}), empty({3, 0}), bias);
  CHECK(to_vector<float>(y) == std::vector<float>{1, 2, 3, 1, 2, 3});
}

TEST_CASE("infinities and NaN go where the formula sends them", "[matmul]") {
  std::vector<float> values(64 * 64, 1);
  values[5 * 64 + 7] = not_a_number;
  values[9 * 64 + 1] = INFINITY;
  const Tensor a = from_values(values, {64, 64}), b = from_values(std::vector<float>(64 * 64, 1), {64, 64}),
               y = empty({64, 64});
  kernels::matmul(cpu, y, a, b, 1, 0);
  const auto got = to_vector<float>(y);
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 64; ++j)
      if (i == 5)
        CHECK(std::isnan(got[i * 64 + j]));
      else
        CHECK(got[i * 64 + j] == (i == 9 ? INFINITY : 64));
}

TEST_CASE("narrow infinities, NaN and subnormals are multiplied as what they are", "[matmul]") {
  const int64_t m = 13, n = 33, k = 45;
  for (Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (bool a_transposed : {false, true})
      for (bool b_transposed : {false, true}) {
        INFO(name_of(dtype) << " " << a_transposed << b_transposed);
        const Tensor a = full(a_transposed ? Shape{k, m} : Shape{m, k}, 0, dtype),
                     b = full(b_transposed ? Shape{n, k} : Shape{k, n}, 1, dtype), y = empty({m, n});
        const auto put = [&](int64_t i, int64_t step, uint16_t bits) {
          a.view().as<uint16_t>()[a_transposed ? step * m + i : i * k + step] = bits;
        };
        put(5, 7, dtype == Dtype::f16 ? 0x7e00 : 0x7fc0);
        put(9, 44, dtype == Dtype::f16 ? 0xfc00 : 0xff80);
        put(3, 2, 0x0001);
        const auto as_matrix = [](const Tensor& x, bool transposed) {
          const Matrix plain{x.view().data, x.size(1), 1, x.dtype()};
          return transposed ? plain.transposed() : plain;
        };
        gemm({m, n, k, as_matrix(y, false), as_matrix(a, a_transposed), as_matrix(b, b_transposed), {}});
        const auto got = to_vector<float>(y);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j)
            if (i == 5)
              CHECK(std::isnan(got[i * n + j]));
            else if (i != 3 || !multiplies(dtype))  // the instruction for bf16 reads subnormals as 0
              CHECK(got[i * n + j] == (i == 9 ? -INFINITY : i != 3 ? 0 : dtype == Dtype::f16 ? 0x1p-24f : 0x1p-133f));
      }
}

TEST_CASE("an infinity at the end of an odd sum stays one", "[matmul]") {
  for (const auto& [m, n, k] : {std::tuple{2, 129, 7}, std::tuple{100, 1, 1}, std::tuple{100, 16, 1},
                                std::tuple{33, 257, 129}, std::tuple{300, 64, 4097}, std::tuple{20, 130, 9001}})
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
      for (const bool in_a : {false, true}) {
        INFO(m << "x" << n << "x" << k << " " << name_of(dtype) << (in_a ? " in a" : " in b"));
        const Tensor a = full({m, k}, 1, dtype), b = full({k, n}, 1, dtype), bias = full({n}, 1, dtype),
                     y = empty({m, n}, dtype);
        const int64_t row = m - 1, column = n - 1;
        const Tensor one = in_a ? a.with_layout({1}, {1}, row * k + k - 1) : b.with_layout({1}, {1}, k * n - 1);
        kernels::fill(cpu, one, std::numeric_limits<float>::infinity());
        const Tensor across = transpose(contiguous(transpose(a, 0, 1)), 0, 1), w = contiguous(transpose(b, 0, 1));
        const auto check = [&, m = m, n = n, k = k](double added) {
          const std::vector<float> got = to_vector<float>(y);
          const float sum = to_vector<float>(cast(full({1}, static_cast<double>(k) + added), dtype))[0];
          int64_t wrong = 0;
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j)
              wrong += got[i * n + j] != ((in_a ? i == row : j == column) ? INFINITY : sum);
          CHECK(wrong == 0);
        };
        for (const Tensor& left : {a, across})
          for (const Tensor& right : {b, transpose(w, 0, 1)}) {
            kernels::matmul(cpu, y, left, right, 1, 0);
            check(0);
          }
        kernels::linear(cpu, y, a, w, bias);
        check(1);
      }
}

TEST_CASE("a batch of products of an odd number of bf16 is captured as one row", "[matmul]") {
  for (const auto& [a, b] : {std::pair{Shape{32, 40, 127}, Shape{32, 127, 200}}, {{64, 64, 127}, {64, 127, 128}}}) {
    const Tensor left = cast(full(a, 0.5), Dtype::bf16), right = cast(full(b, 0.25), Dtype::bf16);
    Tensor y;
    CapturedStep step(cpu, [&] { y = matmul(left, right); });
    CHECK(step.rows() == 1);
    const std::vector<float> once = to_vector<float>(y);
    step.replay();
    CHECK((to_vector<float>(y) == once && once == std::vector<float>(once.size(), static_cast<float>(a[2]) / 8)));
  }
}

TEST_CASE("long sums of narrow numbers are kept in f32", "[matmul]") {
  const int64_t k = 30000;
  for (Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const Tensor a = empty({1, k}, dtype), b = empty({k, 1}, dtype), y = empty({1, 1}, Dtype::f32);
    kernels::fill(cpu, a, 1);
    kernels::fill(cpu, b, 1);
    kernels::matmul(cpu, y, a, b, 1, 0);
    CHECK(item(y) == k);
  }
}

TEST_CASE("a weight gradient's sums have one order, whatever is there already and wherever it lies", "[matmul]") {
  // Our own kernels; results go past the caches if they are large, nothing is added and they lie by whole lines.
  for (const auto& [m, n, k] : {std::tuple{1024, 512, 1024}, std::tuple{512, 256, 700}})
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      INFO(m << "x" << n << "x" << k << " " << name_of(dtype));
      const auto random = [k = k, dtype = dtype](int64_t strips, uint32_t stream) {
        std::vector<float> values(static_cast<size_t>(k * strips));
        for (size_t i = 0; i < values.size(); ++i) values[i] = to_uniform(random_word(7, stream, 0, i)) - 0.5f;
        return cast(from_values(values, {k, strips}), dtype);
      };
      const Tensor a = random(m, 1), b = random(n, 2);
      const auto product = [&, m = m, n = n, k = k](float beta, int64_t offset) {
        const Tensor room = full({m * n + 16}, 0);
        float* y = room.view().as<float>() + offset;
        const Matrix left{a.view().data, 1, m, a.dtype()}, right{b.view().data, n, 1, b.dtype()};
        gemm({m, n, k, {y, n, 1}, left, right, {}, 1, beta});
        return std::vector<float>(y, y + m * n);
      };
      const auto plain = product(0, 0);
      CHECK((product(1, 0) == plain));  // not both vectors in a message
      CHECK((product(0, 1) == plain));
    }
}

TEST_CASE("rows that all stripes of columns share are the same for every number of threads", "[matmul]") {
  // Several stripes of the second operand; the second sum is long enough for two groups of rows. Where rows are not
  // shared for speed's sake, those of f32 are that collide.
  for (const auto& [wide_xeon, m, n, k] :
       {std::tuple{true, 131, 1030, 1003}, std::tuple{true, 610, 150, 8000}, std::tuple{false, 133, 1030, 1024}})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16})
      for (bool by_columns : {false, true}) {
        const PretendedWideXeon pretended(wide_xeon);
        INFO(m << "x" << n << "x" << k << " " << name_of(dtype) << (by_columns ? " by columns" : ""));
        const auto random = [](Shape shape, uint32_t stream) {
          std::vector<float> values(static_cast<size_t>(shape.numel()));
          for (size_t i = 0; i < values.size(); ++i) values[i] = to_uniform(random_word(7, stream, 0, i)) - 0.5f;
          return from_values(values, shape);
        };
        const Tensor a = cast(random({m, k}, 1), dtype), b = cast(random({n, k}, 2), dtype),
                     bias = random({by_columns ? m : n}, 3);
        const int64_t row = by_columns ? 1 : n, column = by_columns ? m : 1;  // of y
        const auto product = [&, m = m, n = n, k = k](int count) {
          const ThreadScope scope(count);
          const Tensor y = full({m, n}, not_a_number);
          const Matrix to{y.view().data, row, column}, left{a.view().data, k, 1, dtype},
              right{b.view().data, 1, k, dtype}, added{bias.view().data, by_columns, !by_columns};
          gemm({m, n, k, to, left, right, added});
          return to_vector<float>(y);
        };
        const auto got = product(1);
        CHECK((product(3) == got));  // not both vectors in a message
        const auto left = to_vector<float>(cast(a, Dtype::f32)), right = to_vector<float>(cast(b, Dtype::f32)),
                   added = to_vector<float>(bias);
        double worst = 0;
        for (int64_t i = 0; i < m; i = i < m - 1 ? std::min<int64_t>(i + 13, m - 1) : m)  // the last one, too
          for (int64_t j = i % 29; j < n; j += 29) {
            double sum = added[by_columns ? i : j];
            for (int64_t s = 0; s < k; ++s) sum += double{left[i * k + s]} * right[j * k + s];
            const double error = std::fabs(sum - got[i * row + j * column]);
            worst = error <= worst ? worst : error;  // or NaN
          }
        // k roundings of sums that stay below sqrt(k) / 4, three times what sums of such terms deviate.
        CHECK(worst < 0x1p-26 * k * std::sqrt(k));
      }
}
