// A linear layer's gradients by its weight and bias in one row: beyond one tile, whichever kernel multiplies.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/backends/kernels/reduce.h"
#include "cinta/core/random.h"
#include "cinta/core/tensor.h"
#include "cinta/ops/shape.h"
#include "product_helpers.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

struct Case {
  int64_t samples, out, in;
};

/// Sums in halves, and in several blocks; of more rows than a thread keeps, of fewer columns than rows and the other
/// way round; gradients that go past the caches; steps that collide; a rest in each direction; one sample, one feature.
const Case cases[] = {{300, 130, 140},    {301, 141, 129},   {2051, 130, 200},  {2501, 261, 135}, {2501, 135, 261},
                      {1030, 1100, 1090}, {600, 1040, 1100}, {300, 1024, 40},   {300, 40, 1024},  {320, 4096, 128},
                      {21, 5000, 130},    {2049, 768, 256},  {700, 1031, 1030}, {1, 130, 140},    {300, 1, 140},
                      {300, 130, 1},      {64, 10, 128},     {17, 33, 9}};

Tensor random(const Shape& shape, uint32_t stream, Dtype dtype) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 2 * to_uniform(random_word(1, stream, 0, i)) - 1;
  const Tensor out = empty(shape, dtype);
  kernels::copy(cpu, out, from_values(values, shape));
  return out;
}

struct Gradients {
  std::vector<float> dw, dbias;
  bool added_apart = false;  ///< the bias got its sums by a row of its own
};

Gradients gradients(const Case& c, Dtype dtype, float beta, float old) {
  struct Sums : RowWatcher {
    void before(const KernelRow& row, std::span<const View>) override { seen = seen || &row == &kernels::sum; }
    void after(const KernelRow&, std::span<const View>) override {}
    bool seen = false;
  } sums;
  const Tensor dy = random({c.samples, c.out}, 1, dtype), x = random({c.samples, c.in}, 2, dtype),
               dw = full({c.out, c.in}, old), dbias = full({c.out}, old);
  watch_rows(cpu, &sums);
  kernels::linear_weight_backward(cpu, dw, dbias, dy, x, beta, beta);
  watch_rows(cpu, nullptr);
  return {to_vector<float>(dw), to_vector<float>(dbias), sums.seen};
}

}  // namespace

TEST_CASE("a layer's weight and bias get their gradients from one row", "[matmul]") {
  int together = 0;
  for (const Case& c : cases)
    for (Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
      for (auto [wide, beta] : {std::pair{false, 0.0f}, {false, 1.0f}, {true, 1.0f}}) {
        const PretendedWideXeon pretended(wide);
        INFO(c.samples << " samples, " << c.in << " to " << c.out << ", " << name_of(dtype) << ", beta " << beta
                       << (wide ? ", wide" : ""));
        const float old = beta == 0 ? not_a_number : 0.5f;
        const Gradients found = gradients(c, dtype, beta, old);
        together += !found.added_apart;
        {
          const ThreadScope one(1);
          const Gradients alone = gradients(c, dtype, beta, old);
          CHECK(alone.dw == found.dw);
          CHECK(alone.dbias == found.dbias);
        }
        const Tensor dy = random({c.samples, c.out}, 1, dtype), x = random({c.samples, c.in}, 2, dtype),
                     dw = full({c.out, c.in}, old);
        kernels::matmul(cpu, dw, transpose(dy, 0, 1), x, 1, beta);
        CHECK(to_vector<float>(dw) == found.dw);
        const std::vector<double> values = to_vector<double>(dy);
        double worst = 0;  // in units of what rounding leaves
        for (int64_t j = 0; j < c.out; ++j) {
          double want = beta * old, magnitude = std::abs(want);
          if (beta == 0) want = magnitude = 0;
          for (int64_t i = 0; i < c.samples; ++i) {
            want += values[i * c.out + j];
            magnitude += std::abs(values[i * c.out + j]);
          }
          const double rounding = 0x1p-24 * (std::sqrt(static_cast<double>(c.samples)) + 2) * magnitude;
          const double error = std::abs(found.dbias[j] - want) / std::max(rounding, 1e-30);
          worst = std::max(worst, std::isnan(error) ? 1e30 : error);
        }
        CHECK(worst <= 1);
      }
  if (isa_level() == isa_avx512_bf16) CHECK(together >= 20);
}
