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

/// What is to be added to, or was left by others and is not to be read.
float old_value(float beta) { return beta == 0 ? not_a_number : 0.5f; }

Gradients gradients(const Case& c, Dtype dtype, float dw_beta, float dbias_beta) {
  struct Sums : RowWatcher {
    void before(const KernelRow& row, std::span<const View>) override { seen = seen || &row == &kernels::sum; }
    void after(const KernelRow&, std::span<const View>) override {}
    bool seen = false;
  } sums;
  const Tensor dy = random({c.samples, c.out}, 1, dtype), x = random({c.samples, c.in}, 2, dtype),
               dw = full({c.out, c.in}, old_value(dw_beta)), all = full({c.out + 2}, 7),
               dbias = all.with_layout({c.out}, {1}, 1);
  kernels::fill(cpu, dbias, old_value(dbias_beta));
  watch_rows(cpu, &sums);
  kernels::linear_weight_backward(cpu, dw, dbias, dy, x, dw_beta, dbias_beta);
  watch_rows(cpu, nullptr);
  CHECK(all.data<float>().front() == 7);
  CHECK(all.data<float>().back() == 7);
  return {to_vector<float>(dw), to_vector<float>(dbias), sums.seen};
}

/// Of the cases below, how many at least have kernels that add up what they pack.
int least_together(Dtype dtype, bool wide) {
  if (isa_level() == isa_avx2) return dtype == Dtype::f32 ? 3 : 0;
  if (isa_level() != isa_avx512_bf16) return 0;
  return dtype == Dtype::f32 ? 5 : dtype == Dtype::bf16 && !wide && multiplies(dtype) ? 8 : 0;
}

}  // namespace

TEST_CASE("a layer's weight and bias get their gradients from one row", "[matmul]") {
  struct Betas {
    bool wide;
    float of_dw, of_dbias;
  };
  for (Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
    for (auto [wide, dw_beta, beta] :
         {Betas{false, 0, 0}, Betas{false, 1, 1}, Betas{false, 1, 0}, Betas{true, 0, 1}, Betas{true, 0, 0.5f}}) {
      const PretendedWideXeon pretended(wide);
      int together = 0;
      for (const Case& c : cases) {
        INFO(c.samples << " samples, " << c.in << " to " << c.out << ", " << name_of(dtype) << ", betas " << dw_beta
                       << " and " << beta << (wide ? ", wide" : ""));
        const Gradients found = gradients(c, dtype, dw_beta, beta);
        together += !found.added_apart;
        {
          const ThreadScope one(1);
          const Gradients alone = gradients(c, dtype, dw_beta, beta);
          CHECK(alone.dw == found.dw);
          CHECK(alone.dbias == found.dbias);
        }
        const Tensor dy = random({c.samples, c.out}, 1, dtype), x = random({c.samples, c.in}, 2, dtype),
                     dw = full({c.out, c.in}, old_value(dw_beta));
        kernels::matmul(cpu, dw, transpose(dy, 0, 1), x, 1, dw_beta);
        CHECK(to_vector<float>(dw) == found.dw);
        const std::vector<double> values = to_vector<double>(dy);
        double worst = 0;  // in units of what rounding leaves
        for (int64_t j = 0; j < c.out; ++j) {
          double want = beta == 0 ? 0 : beta * old_value(beta), magnitude = want;
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
      const bool can_add = beta == 0 || beta == 1;
      INFO(name_of(dtype) << (wide ? ", wide" : ""));
      CHECK(together >= (can_add ? least_together(dtype, wide) : 0));
      if (!can_add || isa_level() == isa_amx) CHECK(together == 0);
    }
}
