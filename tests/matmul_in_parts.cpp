// Products of f32 large enough to be multiplied in parts, where the machine has tiles for bf16 alone: they are as good
// as those of floats, bit for bit where nothing is to be rounded. At every instruction level the same is asked.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/core/random.h"
#include "cinta/core/tensor.h"
#include "cinta/ops/shape.h"
#include "thread_scope.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

// No whole panels, nor steps of the sum, and more than one block of those.
constexpr int64_t m = 261, n = 247, k = 1109;

/// A matrix of these values, row by row; it lies by columns if `transposed`.
Tensor matrix(const std::vector<float>& values, int64_t rows, int64_t columns, bool transposed) {
  if (!transposed) return from_values(values, {rows, columns});
  const Tensor x = empty({columns, rows});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) x.view().as<float>()[j * rows + i] = values[i * columns + j];
  return transpose(x, 0, 1);
}

std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, bool a_transposed,
                           bool b_transposed, float beta = 0, float old = 0) {
  const Tensor y = full({m, n}, old);
  kernels::matmul(cpu, y, matrix(a, m, k, a_transposed), matrix(b, k, n, b_transposed), 1, beta);
  return to_vector<float>(y);
}

/// Numbers of either sign, all of whose 24 bits are random, from 2^-40 to 2^40.
std::vector<float> any_bits(int64_t count, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  uint64_t state = seed;
  for (float& x : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto fraction = static_cast<float>(1 + static_cast<double>(state >> 41) * 0x1p-23);
    x = std::ldexp(fraction, static_cast<int>((state >> 33) % 81) - 40) * (state >> 32 & 1 ? -1.0f : 1.0f);
  }
  return values;
}

/// f(a's orientation, b's) for all four.
template <class F>
void for_orientations(F f) {
  for (bool a_transposed : {false, true})
    for (bool b_transposed : {false, true}) {
      INFO("a transposed " << a_transposed << ", b transposed " << b_transposed);
      f(a_transposed, b_transposed);
    }
}

}  // namespace

TEST_CASE("every bit of a float counts in a product", "[matmul]") {
  const auto place = [](int64_t i) { return i * 7 % k; };
  std::vector<float> choose_columns(k * n, 0), choose_rows(m * k, 0);
  for (int64_t j = 0; j < n; ++j) choose_columns[place(j) * n + j] = std::ldexp(1.0f, static_cast<int>(j % 9) - 4);
  for (int64_t i = 0; i < m; ++i) choose_rows[i * k + place(i)] = std::ldexp(-1.0f, static_cast<int>(i % 9) - 4);
  const auto a = any_bits(m * k, 1), b = any_bits(k * n, 2);
  for_orientations([&](bool a_transposed, bool b_transposed) {
    const auto from_a = product(a, choose_columns, a_transposed, b_transposed),
               from_b = product(choose_rows, b, a_transposed, b_transposed);
    int64_t wrong = 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        wrong += from_a[i * n + j] != a[i * k + place(j)] * choose_columns[place(j) * n + j];
        wrong += from_b[i * n + j] != choose_rows[i * k + place(i)] * b[place(i) * n + j];
      }
    CHECK(wrong == 0);
  });
}

TEST_CASE("small parts of both factors are multiplied, too", "[matmul]") {
  std::vector<float> a(m * k, 0), b(k * n, 0);
  for (int64_t i = 0; i < m; ++i) a[i * k + 1100] = 1 + 0x1p-9f;
  for (int64_t j = 0; j < n; ++j) b[1100 * n + j] = 1 + 0x1p-9f;
  for_orientations([&](bool a_transposed, bool b_transposed) {
    CHECK(product(a, b, a_transposed, b_transposed) == std::vector<float>(m * n, 1 + 0x1p-8f + 0x1p-18f));
  });
}

TEST_CASE("a long sum of floats is hardly rounded and the same on any number of threads", "[matmul]") {
  const auto normals = [](int64_t count, const char* name) {
    std::vector<float> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(random_normal(1, stream_id(name), 0, i));
    return values;
  };
  const auto a = normals(m * k, "a"), b = normals(k * n, "b");
  std::vector<double> want(m * n, 0), sizes(m * n, 0);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t t = 0; t < k; ++t)
      for (int64_t j = 0; j < n; ++j) {
        const double term = static_cast<double>(a[i * k + t]) * b[t * n + j];
        want[i * n + j] += term, sizes[i * n + j] += std::abs(term);
      }
  for_orientations([&](bool a_transposed, bool b_transposed) {
    const auto got = product(a, b, a_transposed, b_transposed, 0.5f, 3);
    double worst = 0;
    for (int64_t i = 0; i < m * n; ++i) worst = std::max(worst, std::abs(got[i] - 1.5 - want[i]) / sizes[i]);
    // Errors of a sequential sum of random terms, which is as large as the root of their number, and the last
    // roundings.
    CHECK(worst <= 4 * 0x1p-24);
    const ThreadScope one(1);
    CHECK(product(a, b, a_transposed, b_transposed, 0.5f, 3) == got);
  });
}

TEST_CASE("what is no number or close to none is multiplied as floats are", "[matmul]") {
  constexpr float most = std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity();
  std::vector<float> a(m * k, 1), b(k * n, 0.25f);
  a[5 * k + 7] = std::numeric_limits<float>::quiet_NaN();
  a[40 * k + 1108] = infinity;
  a[100 * k + 600] = most, a[101 * k + 601] = -most;
  a[260 * k + 3] = -infinity;
  b[900 * n + 246] = 0;
  a[150 * k + 900] = infinity;  // times zero in the last column
  for_orientations([&](bool a_transposed, bool b_transposed) {
    const auto got = product(a, b, a_transposed, b_transposed, 2, 8);
    int64_t wrong = 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const float x = got[i * n + j], plain = 16 + 0.25f * static_cast<float>(k - (j == 246));
        const bool none = i == 5 || (i == 150 && j == 246);
        const float want = i == 40 || i == 150 ? infinity
                           : i == 260          ? -infinity
                           : i == 100          ? most / 4
                           : i == 101          ? -most / 4
                                               : plain;
        wrong += none ? !std::isnan(x) : x != want;
      }
    CHECK(wrong == 0);
  });
}

TEST_CASE("a sum that is too long to be taken apart at once", "[matmul]") {
  constexpr int64_t side = 230, terms = 16500;
  const auto a = any_bits(side * terms, 5);
  std::vector<float> choose(terms * side, 0);
  const auto place = [](int64_t j) { return j % 3 * 8192 + j % 100; };
  for (int64_t j = 0; j < side; ++j) choose[place(j) * side + j] = 1;
  const Tensor y = full({side, side}, 0), w = transpose(matrix(choose, terms, side, false), 0, 1);
  kernels::linear(cpu, y, matrix(a, side, terms, false), w, from_values(std::vector<float>(side, 0), {side}));
  const Tensor down = full({side, side}, 0);
  kernels::matmul(cpu, down, matrix(a, side, terms, true), matrix(choose, terms, side, false), 1, 0);
  int64_t wrong = 0;
  for (int64_t i = 0; i < side; ++i)
    for (int64_t j = 0; j < side; ++j) {
      wrong += y.view().as<float>()[i * side + j] != a[i * terms + place(j)];
      wrong += down.view().as<float>()[i * side + j] != a[i * terms + place(j)];
    }
  CHECK(wrong == 0);
}
