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
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

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
    // Partial sums of t random terms are of the size sqrt(t): what their roundings, each up to 2^-24 of them, add up to
    // is 0.64 * 2^-24 of the terms' sizes, and in the worst of so many sums six times that.
    CHECK(worst <= 6 * 0.64 * 0x1p-24);
    const ThreadScope one(1);
    CHECK(product(a, b, a_transposed, b_transposed, 0.5f, 3) == got);
  });
}

TEST_CASE("what is no number or close to none is multiplied as floats are", "[matmul]") {
  constexpr float most = std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity();
  std::vector<float> a(m * k, 1), b(k * n, 0.25f);
  a[5 * k + 7] = not_a_number;
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
  constexpr int64_t side = 230, terms = 25000;  // packed, the smaller operand would take 36 MiB
  std::vector<float> a(side * terms), choose(terms * side, 0);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 2654435761u % (1 << 20));
  const auto place = [](int64_t j) { return j % 3 * 12000 + j % 100; };  // on both sides of the cut
  for (int64_t j = 0; j < side; ++j) choose[place(j) * side + j] = 1;
  const Tensor b = matrix(choose, terms, side, false), y = full({side, side}, not_a_number);
  const Tensor down = full({side, side}, not_a_number), added = full({side, side}, 4);
  kernels::linear(cpu, y, matrix(a, side, terms, false), transpose(b, 0, 1), full({side}, 0.25f));
  kernels::matmul(cpu, down, matrix(a, side, terms, true), b, 2, 0);
  kernels::matmul(cpu, added, matrix(a, side, terms, true), b, 1, 0.125f);
  int64_t wrong = 0;
  for (int64_t i = 0; i < side; ++i)
    for (int64_t j = 0; j < side; ++j) {
      const float chosen = a[i * terms + place(j)];
      wrong += y.view().as<float>()[i * side + j] != chosen + 0.25f;
      wrong += down.view().as<float>()[i * side + j] != 2 * chosen;
      wrong += added.view().as<float>()[i * side + j] != chosen + 0.5f;
    }
  CHECK(wrong == 0);
}

TEST_CASE("products in parts at any edge into any result", "[matmul]") {
  struct Case {
    int64_t batch, m, n, k;
    bool a_transposed, b_transposed, y_transposed;
    float alpha, beta;
  };
  for (const Case& c :
       {Case{1, 300, 261, 600, true, false, false, 1, 0},     // of the smaller operand's last panel half
        Case{1, 257, 300, 600, true, false, false, 0.5f, 2},  // or one row
        Case{1, 256, 320, 700, true, false, false, 1, 0},     // whole panels, past the caches
        Case{1, 320, 256, 700, true, false, false, 1, 0}, Case{3, 230, 240, 250, false, true, false, 1, 0},
        Case{3, 230, 240, 250, true, false, false, 2, 1}, Case{1, 300, 261, 77, false, true, true, 3, 0.5f},
        Case{1, 230, 1030, 65, false, false, false, 1, 1}}) {
    INFO(c.batch << "x" << c.m << "x" << c.n << "x" << c.k << " " << c.a_transposed << c.b_transposed);
    const auto operand = [&](uint64_t seed, int64_t rows, int64_t columns, bool across) {
      const auto bits = any_bits(c.batch * rows * columns, seed);
      std::vector<float> values(bits.size());
      for (size_t i = 0; i < bits.size(); ++i) values[i] = std::ldexp(bits[i], -std::ilogb(bits[i]));
      const Tensor x = from_values(values, across ? Shape{c.batch, columns, rows} : Shape{c.batch, rows, columns});
      return across ? transpose(x, 1, 2) : x;
    };
    const Tensor a = operand(6, c.m, c.k, c.a_transposed), b = operand(7, c.k, c.n, c.b_transposed),
                 y = operand(8, c.m, c.n, c.y_transposed);
    const auto at = [](const Tensor& x, int64_t s, int64_t i, int64_t j) {
      const View& v = x.view();
      return static_cast<double>(v.as<float>()[s * v.stride(0) + i * v.stride(1) + j * v.stride(2)]);
    };
    std::vector<double> want, tolerated;
    for (int64_t s = 0; s < c.batch; ++s)
      for (int64_t i = 0; i < c.m; ++i)
        for (int64_t j = 0; j < c.n; ++j) {
          double sum = 0, size = 0;
          for (int64_t t = 0; t < c.k; ++t) {
            const double term = at(a, s, i, t) * at(b, s, t, j);
            sum += term, size += std::abs(term);
          }
          const double old = c.beta * at(y, s, i, j);
          want.push_back(c.alpha * sum + old);
          tolerated.push_back(0x1p-24 * (static_cast<double>(c.k + 2) * c.alpha * size + 2 * std::abs(old)));
        }
    kernels::matmul(cpu, y, a, b, c.alpha, c.beta);
    int64_t wrong = 0;
    for (size_t e = 0; e < want.size(); ++e) {
      const auto index = static_cast<int64_t>(e);
      const double got = at(y, index / (c.m * c.n), index / c.n % c.m, index % c.n);
      wrong += !(std::abs(got - want[e]) <= tolerated[e]);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("what a product before has left in memory changes nothing", "[matmul]") {
  const ThreadScope one(1);
  const auto multiply = [](int64_t rows, float value) {
    const Tensor y = empty({rows, 391}), a = full({rows, k}, value);
    kernels::copy(cpu, View{a.view().data, {261, k}, {k, 1}, Dtype::f32, true},
                  matrix(std::isnan(value) ? std::vector<float>(261 * k, value) : any_bits(261 * k, 9), 261, k, false));
    kernels::matmul(cpu, y, a, matrix(any_bits(k * 391, 10), k, 391, false), 1, 0);
    return to_vector<float>(y);
  };
  const auto before = multiply(261, 1);  // of the last panel, half is no rows
  multiply(288, not_a_number);
  CHECK(multiply(261, 1) == before);
}
