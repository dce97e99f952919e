// What the contract of the matrix products leaves out: sizes beyond one tile, plans, number of threads, old values of
// y.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>
#include <tuple>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/onednn.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/backends/threads.h"
#include "cinta/core/random.h"
#include "cinta/core/tensor.h"
#include "cinta/ops/shape.h"
#include "product_helpers.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random(int64_t count, uint32_t stream) {
  std::vector<float> out(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) out[i] = 2 * to_uniform(random_word(1, stream, 0, static_cast<uint64_t>(i))) - 1;
  return out;
}

/// A random matrix [rows, columns] whose elements lie row_stride and column_stride apart.
Tensor matrix(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride, uint32_t stream, Dtype dtype) {
  const int64_t extent = (rows - 1) * row_stride + (columns - 1) * column_stride + 1;
  const Tensor wide = from_values(random(extent, stream), {extent}), out = empty({extent}, dtype);
  kernels::copy(cpu, out, wide);
  return out.with_layout({rows, columns}, {row_stride, column_stride}, 0);
}

struct Case {
  int64_t m, n, k;
  bool a_transposed = false, b_transposed = false;
  int64_t gap = 0;   ///< between rows
  int64_t step = 1;  ///< between neighbours in a row
};

Tensor operand(int64_t rows, int64_t columns, bool transposed, const Case& c, uint32_t stream, Dtype dtype) {
  const int64_t pitch = (transposed ? rows : columns) * c.step + c.gap;
  return transposed ? matrix(rows, columns, c.step, pitch, stream, dtype)
                    : matrix(rows, columns, pitch, c.step, stream, dtype);
}

/// y = alpha a b + beta y, as numbers.
std::vector<float> product(const Case& c, Dtype dtype, float alpha, float beta, float old = 0.5f,
                           std::optional<Dtype> y_dtype = {}) {
  const Tensor a = operand(c.m, c.k, c.a_transposed, c, 1, dtype), b = operand(c.k, c.n, c.b_transposed, c, 2, dtype);
  const Tensor y = operand(c.m, c.n, false, c, 3, y_dtype.value_or(dtype));
  kernels::fill(cpu, y, old);
  kernels::matmul(cpu, y, a, b, alpha, beta);
  const Tensor out = empty({c.m, c.n});
  kernels::copy(cpu, out, y);
  return to_vector<float>(out);
}

/// Weight gradients have a long k; powers of two, prime numbers and rows that are no multiple of anything are here, and
/// results that are whole lines, which may go past the caches.
const Case cases[] = {{256, 256, 2048, true, false},
                      {1024, 256, 700, true, false},
                      {700, 112, 70, true},
                      {515, 160, 70, true, false, 3},
                      {300, 200, 150, false, true},
                      {128, 10, 512, false, true},
                      {10, 512, 128, true, false},
                      {10, 128, 4096, true, false},
                      {2, 3, 20000, true, false},
                      {2049, 65, 33},
                      {1, 700, 300, false, true},
                      {700, 1, 300},
                      {61, 1031, 257, true, true},
                      {97, 89, 83, false, false, 3},
                      {97, 89, 83, true, true, 1, 2},
                      {33, 70, 10000, false, false, 3},
                      {130, 1500, 1100, false, false, 0, 2},
                      {1031, 261, 2051, true},
                      {203, 1501, 513, true, false, 3},
                      {1100, 1090, 515, true},
                      {515, 1120, 513, true, false, 16},
                      {389, 365, 518},
                      {389, 365, 518, false, true},
                      {193, 4001, 130, false, true, 2},
                      {211, 1100, 1026, false, false, 6},
                      {400, 96, 2050},
                      {64, 256, 258, false, true},
                      {37, 520, 130, false, true},
                      {41, 520, 130},
                      {2050, 272, 37, true},
                      {1100, 520, 1500, false, true},
                      {301, 1100, 70},
                      {1031, 261, 258},
                      {1100, 300, 130, false, true},
                      {257, 256, 32769, true},
                      {600, 1030, 2049, true},
                      {65, 391, 258, false, true},
                      {121, 1300, 66, false, true, 2},
                      // Rows that a tile has too few of, or one too many.
                      {11, 130, 40},
                      {6, 130, 40, false, true},
                      {134, 70, 97, false, true},
                      {195, 40, 98},
                      {196, 41, 99},
                      {197, 17, 101},
                      {209, 40, 70},
                      // Fewer rows than columns, but not many fewer.
                      {530, 640, 129, false, true},
                      // A long sum whose parts have more than a stripe of columns.
                      {40, 300, 8200},
                      // One so long that parts of it are added up where they are.
                      {44, 70, 17000}};

std::string name(const Case& c) {
  return join(c.m, "x", c.n, "x", c.k, c.a_transposed ? " t" : " n", c.b_transposed ? "t" : "n", " gap ", c.gap,
              " step ", c.step);
}

/// The largest error of `got` against alpha a b + added(column), in units of what rounding leaves.
template <class Added>
double error_in_tolerances(const Case& c, Dtype dtype, Dtype y_dtype, float alpha, Added added,
                           const std::vector<float>& got) {
  const auto a = to_vector<double>(operand(c.m, c.k, c.a_transposed, c, 1, dtype)),
             b = to_vector<double>(operand(c.k, c.n, c.b_transposed, c, 2, dtype));
  const double unit = y_dtype == Dtype::bf16 ? 0x1p-8 : y_dtype == Dtype::f16 ? 0x1p-11 : 0x1p-24;
  double worst = 0;
  // Every 11th row and column, and the last ones: each kind of tile and of edge is met.
  for (int64_t i = c.m - 1; i >= 0; i -= 11)
    for (int64_t j = c.n - 1; j >= 0; j -= 11 + c.n / 40) {
      double want = added(j), magnitude = std::abs(want);
      for (int64_t k = 0; k < c.k; ++k) {
        const double term = alpha * a[i * c.k + k] * b[k * c.n + j];
        want += term;
        magnitude += std::abs(term);
      }
      // Up to k roundings of partial sums, each of at most `magnitude`; they are random, so sqrt(k), and 8 deviations.
      const double allowed = 8 * 0x1p-24 * std::sqrt(static_cast<double>(c.k)) * magnitude / 4 + unit * std::abs(want);
      const double error = std::abs(got[i * c.n + j] - want);
      worst = std::max(worst, std::isfinite(error) ? error / allowed : INFINITY);
    }
  return worst;
}

}  // namespace

TEST_CASE("products larger than a tile are right", "[matmul]") {
  for (const Case& c : cases)
    for (auto [dtype, y_dtype, alpha, beta] : {std::tuple{Dtype::f32, Dtype::f32, 1.0f, 0.0f},
                                               {Dtype::f32, Dtype::f32, 0.5f, 1.0f},
                                               {Dtype::f32, Dtype::f32, 1.0f, 1.0f},
                                               {Dtype::bf16, Dtype::bf16, 1.0f, 0.0f},
                                               {Dtype::bf16, Dtype::f32, 1.0f, 0.0f},
                                               {Dtype::bf16, Dtype::f32, 0.5f, 0.0f},
                                               {Dtype::bf16, Dtype::f32, 0.5f, 1.0f},
                                               {Dtype::bf16, Dtype::f32, 1.0f, 1.0f},
                                               {Dtype::f16, Dtype::f16, 1.0f, 0.0f},
                                               {Dtype::f16, Dtype::f16, 1.0f, 1.0f},
                                               {Dtype::f16, Dtype::f32, 1.0f, 1.0f}}) {
      INFO(name(c) << " " << name_of(dtype) << " to " << name_of(y_dtype) << " alpha " << alpha << " beta " << beta);
      const auto got = product(c, dtype, alpha, beta, 0.5f, y_dtype);
      CHECK(error_in_tolerances(
                c, dtype, y_dtype, alpha, [=](int64_t) { return 0.5 * beta; }, got) <= 1);
    }
}

TEST_CASE("a bias is added to every row of a product larger than a tile", "[matmul]") {
  for (const Case& c :
       {Case{300, 200, 150, false, true}, Case{128, 10, 700, false, true}, Case{70, 523, 257, false, true},
        Case{199, 523, 258, false, true}, Case{530, 640, 129, false, true}, Case{64, 256, 258, false, true}})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
      const Tensor bias = matrix(1, c.n, c.n, 1, 4, dtype), y = empty({c.m, c.n}, dtype), got = empty({c.m, c.n});
      const Tensor x = operand(c.m, c.k, false, c, 1, dtype), w = operand(c.k, c.n, true, c, 2, dtype);
      kernels::linear(cpu, y, x, transpose(w, 0, 1), reshape(bias, {c.n}));
      kernels::copy(cpu, got, y);
      INFO(name(c) << " " << name_of(dtype));
      const auto added = to_vector<double>(bias);
      CHECK(error_in_tolerances(
                c, dtype, dtype, 1, [&](int64_t j) { return added[j]; }, to_vector<float>(got)) <= 1);
    }
}

TEST_CASE("a product has the same bits with any number of threads", "[matmul]") {
  for (const Case& c : cases)
    for (auto [dtype, y_dtype, beta] : {std::tuple{Dtype::f32, Dtype::f32, 1.0f},
                                        {Dtype::bf16, Dtype::bf16, 0.0f},
                                        {Dtype::bf16, Dtype::bf16, 1.0f},
                                        {Dtype::bf16, Dtype::f32, 0.0f},
                                        {Dtype::bf16, Dtype::f32, 1.0f},
                                        {Dtype::f16, Dtype::f16, 0.0f},
                                        {Dtype::f16, Dtype::f32, 1.0f}}) {
      const auto compute = [&, dtype = dtype, y_dtype = y_dtype, beta = beta](int count) {
        const ThreadScope scope(count);
        return product(c, dtype, 1, beta, 0.5f, y_dtype);
      };
      const auto alone = compute(1);
      INFO(name(c) << " " << name_of(dtype) << " to " << name_of(y_dtype));
      for (int count : {2, 3, 7}) CHECK(compute(count) == alone);
    }
}

TEST_CASE("with beta 0 the old values are never read", "[matmul]") {
  for (const Case& c : {Case{64, 64, 64}, Case{300, 200, 150, true}, Case{300, 200, 150, false, true},
                        Case{64, 64, 64, true, true, 1, 2}})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
      for (float alpha : {1.0f, 0.25f}) {
        INFO(name(c) << " " << name_of(dtype) << " alpha " << alpha);
        CHECK(product(c, dtype, alpha, 0, not_a_number) == product(c, dtype, alpha, 0, 1));
        CHECK(std::isnan(product(c, dtype, alpha, 1, not_a_number)[0]));
      }
  const auto gradient = [](float beta, float old) {
    return product({517, 261, 515, true}, Dtype::bf16, 1, beta, old, Dtype::f32);
  };
  CHECK(gradient(0, not_a_number) == gradient(0, 1));
  CHECK(std::isnan(gradient(1, not_a_number)[0]));
}

TEST_CASE("what lies between the rows of a product's operands is never multiplied", "[matmul]") {
  for (Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
    for (bool b_transposed : {false, true}) {
      const auto apart = [&](int64_t rows, int64_t columns, uint32_t stream) {
        const Tensor wide = full({rows, columns + 4}, not_a_number, dtype),
                     out = wide.with_layout({rows, columns}, {columns + 4, 1}, 0);
        kernels::copy(cpu, out, matrix(rows, columns, columns, 1, stream, dtype));
        return out;
      };
      const int64_t m = 257, n = 1100, k = 70;
      const Tensor a = apart(m, k, 1), b = b_transposed ? transpose(apart(n, k, 2), 0, 1) : apart(k, n, 2);
      const Tensor y = empty({m, n}), close = empty({m, n});
      const Tensor narrow = empty({m, n}, dtype);
      kernels::matmul(cpu, narrow, a, b, 1, 0);
      kernels::copy(cpu, y, narrow);
      kernels::matmul(cpu, narrow, contiguous(a), contiguous(b), 1, 0);
      kernels::copy(cpu, close, narrow);
      INFO(name_of(dtype) << (b_transposed ? " transposed" : ""));
      const auto got = to_vector<float>(y), want = to_vector<float>(close);
      for (size_t i = 0; i < got.size(); ++i) REQUIRE(std::abs(got[i] - want[i]) <= 0x1p-7 * (1 + std::abs(want[i])));
    }
}

TEST_CASE("our own kernels are right for few rows, columns and terms, and leave what lies between y's rows",
          "[matmul]") {
  const auto plain = [](const Tensor& x) {
    const View v = x.view();
    return Matrix{v.data, v.stride(0), v.stride(1), v.dtype};
  };
  for (auto [dtype, y_dtype, beta] : {std::tuple{Dtype::f32, Dtype::f32, 0.0f},
                                      {Dtype::f32, Dtype::f32, 1.0f},
                                      {Dtype::bf16, Dtype::bf16, 0.0f},
                                      {Dtype::bf16, Dtype::f32, 1.0f},
                                      {Dtype::f16, Dtype::f16, 0.0f},
                                      {Dtype::f16, Dtype::f32, 1.0f}})
    for (bool b_transposed : {false, true})
      for (int64_t m : {1, 12, 13, 25})
        for (int64_t n : {1, 31, 33, 37, 65})
          for (int64_t k : {2, 34, 45}) {
            const Case c{m, n, k, false, b_transposed, b_transposed ? 2 : 0};
            const Tensor a = operand(m, k, false, c, 1, dtype), b = operand(k, n, b_transposed, c, 2, dtype);
            const Tensor bias = matrix(1, n, 2 * n, 2, 3, dtype), wide = full({m, n + 3}, 0.5, y_dtype),
                         y = wide.with_layout({m, n}, {n + 3, 1}, 0), got = empty({m, n}), all = empty({m, n + 3});
            Gemm product{m, n, k, plain(y), plain(a), plain(b), {}, 1, beta};
            if (beta == 0) product.bias = {bias.view().data, 0, 2, dtype};
            for (const bool transposed : {false, true}) {  // the same numbers, where y lies by columns
              kernels::fill(cpu, wide, 0.5);
              gemm(transposed ? product.transposed() : product);
              kernels::copy(cpu, got, y);
              kernels::copy(cpu, all, wide);
              INFO(name(c) << " " << name_of(dtype) << " to " << name_of(y_dtype) << " beta " << beta << " transposed "
                           << transposed);
              const auto added = to_vector<double>(bias);
              CHECK(error_in_tolerances(
                        c, dtype, y_dtype, 1, [&, beta = beta](int64_t j) { return beta == 0 ? added[j] : 0.5; },
                        to_vector<float>(got)) <= 1);
              const auto values = to_vector<float>(all);
              for (int64_t i = 0; i < m; ++i)
                for (int64_t j = n; j < n + 3; ++j) REQUIRE(values[i * (n + 3) + j] == 0.5f);
            }
          }
}

TEST_CASE("a batch is the products of its matrices", "[matmul]") {
  const int64_t count = 6, m = 33, n = 47, k = 65;
  for (bool one_weight : {false, true}) {
    const Tensor a = from_values(random(count * m * k, 1), {2, 3, m, k});
    Tensor b = from_values(random(count * k * n, 2), {2, 3, k, n});
    if (one_weight) b = b.with_layout({2, 3, k, n}, {0, 0, n, 1}, 0);
    const Tensor y = empty({2, 3, m, n}), single = empty({m, n});
    kernels::matmul(cpu, y, a, b, 1, 0);
    for (int64_t i = 0; i < count; ++i) {
      kernels::matmul(cpu, single, a.with_layout({m, k}, {k, 1}, i * m * k),
                      b.with_layout({k, n}, {n, 1}, one_weight ? 0 : i * k * n), 1, 0);
      const auto all = to_vector<float>(y), one = to_vector<float>(single);
      double worst = 0;
      for (size_t j = 0; j < one.size(); ++j) worst = std::max<double>(worst, std::abs(all[i * m * n + j] - one[j]));
      CHECK(worst <= 0x1p-24 * 16 * 8);  // the order of sums may differ, no more
    }
  }
}

TEST_CASE("products of many shapes at once, from many threads", "[matmul]") {
  std::vector<std::vector<float>> alone, together(12);
  for (int i = 0; i < 12; ++i) alone.push_back(product({40 + i % 4, 30, 20 + i % 3}, Dtype::f32, 1, 0));
  std::vector<std::thread> workers;
  for (int w = 0; w < 4; ++w)
    workers.emplace_back([&, w] {
      for (int round = 0; round < 20; ++round)
        for (int i = w; i < 12; i += 4) together[i] = product({40 + i % 4, 30, 20 + i % 3}, Dtype::f32, 1, 0);
    });
  for (auto& worker : workers) worker.join();
  CHECK(together == alone);
}

TEST_CASE("products have the same bits at once, from many threads, and in a batch", "[matmul]") {
  const Dtype dtype = GENERATE(Dtype::bf16, Dtype::f32);
  // A weight gradient, an input's gradient, a layer's output.
  for (auto [a_transposed, b_transposed] : {std::pair{true, false}, {false, false}, {false, true}}) {
    INFO(name_of(dtype) << " " << a_transposed << b_transposed);
    const Dtype y_dtype = a_transposed ? Dtype::f32 : dtype;
    const auto one = [&, a = a_transposed, b = b_transposed](int64_t i) {
      return product({389 + 2 * (i % 3), 365, 518, a, b}, dtype, 1, 0, 0.5f, y_dtype);
    };
    std::vector<std::vector<float>> alone, together(6);
    for (int i = 0; i < 6; ++i) alone.push_back(one(i));
    std::vector<std::thread> workers;
    for (int w = 0; w < 2; ++w)
      workers.emplace_back([&, w] {
        for (int i = w; i < 6; i += 2) together[i] = one(i);
      });
    for (auto& worker : workers) worker.join();
    CHECK(together == alone);

    const int64_t count = 16, m = 389, n = 365, k = 518;
    const Tensor a = empty({count, k, m}, dtype), b = empty({count, k, n}, dtype);
    kernels::copy(cpu, a, from_values(random(count * k * m, 1), {count, k, m}));
    kernels::copy(cpu, b, from_values(random(count * k * n, 2), {count, k, n}));
    const Shape of_a = a_transposed ? Shape{1, m} : Shape{k, 1}, of_b = b_transposed ? Shape{1, k} : Shape{n, 1};
    const auto batch = [&](const Tensor& x, int64_t rows, int64_t columns, Shape strides) {
      return x.with_layout({count, rows, columns}, {rows * columns, strides[0], strides[1]}, 0);
    };
    const Tensor y = empty({count, m, n}, y_dtype), single = empty({m, n}, y_dtype);
    kernels::matmul(cpu, y, batch(a, m, k, of_a), batch(b, k, n, of_b), 1, 0);
    for (int64_t i : {int64_t{0}, int64_t{7}, count - 1}) {
      kernels::matmul(cpu, single, a.with_layout({m, k}, of_a, i * k * m), b.with_layout({k, n}, of_b, i * k * n), 1,
                      0);
      const auto values = [](const Tensor& x) {
        const Tensor wide = empty(x.shape());
        kernels::copy(cpu, wide, x);
        return to_vector<float>(wide);
      };
      CHECK(values(y.with_layout({m, n}, {n, 1}, i * m * n)) == values(single));
    }
  }
}

TEST_CASE("a product that was seen before costs no preparation", "[matmul]") {
  const auto plans_for = [](int64_t size) {
    const Tensor a = full({size, size}, 1), y = empty({size, size});
    const int64_t before = onednn::plans_made();
    for (int i = 0; i < 100; ++i) kernels::matmul(cpu, y, a, a, 1, 0);
    return onednn::plans_made() - before;
  };
  const int64_t first = plans_for(37);
  CHECK(first <= 4);  // inside, lower edge, right edge, corner
  CHECK(plans_for(37) == 0);
  CHECK((plans_for(41) > 0) == (first > 0));  // where oneDNN is built in at all
}

TEST_CASE("a product in f64 is left to the reference", "[matmul]") {
  const Tensor a = empty({2, 2}, Dtype::f64);
  CHECK_THROWS_AS(kernels::matmul(cpu, a, a, a, 1, 0), DtypeError);
}
