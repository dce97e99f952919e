// Bias, dropout, residual and layer norm in one pass over each row, and their gradients in one.
#include "cinta/backends/cpu/simd/normalize.h"
#include "cinta/backends/cpu/simd/random.h"
#include "cinta/backends/kernels/normalize.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

using kernels::Dropout;

/// The factors of row `row`; leaves `factors` alone (ones) where nothing is dropped.
void draw(float* factors, const DropoutRecord& site, bool drops, int64_t row, int64_t n) {
  if (drops) dropout_factors(factors, site, site.first_element(row, n), n);
}

template <class S>
void forward_with(View y, View y_too, View normal, View mean, View rstd, View x, View x_bias, View residual, View gain,
                  View bias, float eps, Dropout dropout) {
  const int64_t n = columns_of(x);
  const DropoutRecord site(dropout);
  const bool drops = dropout.p > 0;
  float* parameters = scratch<float>(3 * n, Workspace::call);
  const float *g = parameter(gain, n, 1, parameters), *b = parameter(bias, n, 0, parameters + n),
              *added = parameter(x_bias, n, 0, parameters + 2 * n);
  parallel_for(rows_of(x), rows_of_tile(n), [&](int64_t begin, int64_t end) {
    float* buffer = scratch<float>(5 * n, Workspace::tile);
    float* factors = buffer + 4 * n;
    for (int64_t r = begin; r < end; ++r) {
      const Values<S> in = row_values<S>(x, r, n, buffer), kept = row_values<S>(residual, r, n, buffer + n);
      float *total = row_target(normal, r, n, buffer + 2 * n), *out = row_target(y, r, n, buffer + 3 * n);
      draw(factors, site, drops, r, n);
      const float row_sum =
          drops ? sum_of(n, [=](int64_t j) { return total[j] = kept[j] + masked(in[j] + added[j], factors[j]); })
                : sum_of(n, [=](int64_t j) { return total[j] = kept[j] + (in[j] + added[j]); });
      const Moments found = moments(total, n, eps, row_sum);
      mean.as<float>()[r] = found.mean;
      rstd.as<float>()[r] = found.rstd;
      normalize_row(out, total, total, found, g, b, n);
      finish_row(normal, r, n, total);
      finish_row(y, r, n, out);
      if (y_too) store(y_too.dtype, y_too.data, r * n, 1, out, n);
    }
  });
}

void forward(View y, View y_too, View normal, View mean, View rstd, View x, View x_bias, View residual, View gain,
             View bias, float eps, Dropout dropout) {
  with_read_type({x, residual}, [&]<class S>() {
    forward_with<S>(y, y_too, normal, mean, rstd, x, x_bias, residual, gain, bias, eps, dropout);
  });
}

template <class S>
void backward_with(View dx, View dresidual, View dx_bias, View dgain, View dbias, View dy, View normal, View rstd,
                   View gain, Dropout dropout, float beta_x_bias, float beta_gain, float beta_bias) {
  const int64_t n = columns_of(normal), rows = rows_of(normal);
  const DropoutRecord site(dropout);
  const bool drops = dropout.p > 0;
  float* partial = scratch<float>(partial_sums(rows, n, 3) + n, Workspace::call);
  const float* g = parameter(gain, n, 1, partial + partial_sums(rows, n, 3));
  const Summed summed[] = {{dgain, beta_gain}, {dbias, beta_bias}, {dx_bias, beta_x_bias}};
  sum_over_rows(rows, n, 5, summed, partial, [&](int64_t begin, int64_t end, float** sums, float* buffer) {
    float* factors = buffer + 4 * n;
    std::fill_n(factors, n, 1.0f);
    for (int64_t r = begin; r < end; ++r) {
      const Values<S> gradient = row_values<S>(dy, r, n, buffer), in = row_values<S>(normal, r, n, buffer + n);
      float* whole = row_target(dresidual, r, n, buffer + 2 * n);
      normalize_row_gradient(whole, gradient, in, {0, 1}, rstd.as<const float>()[r], g, sums[0], sums[1], n, true);
      draw(factors, site, drops, r, n);
      float *out = dx ? row_target(dx, r, n, buffer + 3 * n) : buffer + 3 * n, *column_sums = sums[2];
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) {
        out[j] = masked(whole[j], factors[j]);
        column_sums[j] += out[j];
      }
      if (dx) finish_row(dx, r, n, out);
      finish_row(dresidual, r, n, whole);
    }
  });
}

void backward(View dx, View dresidual, View dx_bias, View dgain, View dbias, View dy, View normal, View rstd, View gain,
              Dropout dropout, float beta_x_bias, float beta_gain, float beta_bias) {
  with_read_type({dy, normal}, [&]<class S>() {
    backward_with<S>(dx, dresidual, dx_bias, dgain, dbias, dy, normal, rstd, gain, dropout, beta_x_bias, beta_gain,
                     beta_bias);
  });
}

const InstallSimd residual_norm{kernels::residual_norm, forward, floats_of_32_bits};
const InstallSimd residual_norm_backward{kernels::residual_norm_backward, backward, floats_of_32_bits};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
