// Layer norm and RMS norm.
#include "cinta/backends/kernels/normalize.h"

#include "cinta/backends/cpu/simd/normalize.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

/// Both norms forward: `mean` is absent for RMS norm.
void forward(const View& y, const View& y_too, const View& normal, const View& mean, const View& rstd, const View& x,
             const View& gain, const View& bias, float eps) {
  const int64_t n = columns_of(x);
  float* parameters = scratch<float>(2 * n, Workspace::call);
  const float *g = parameter(gain, n, 1, parameters), *b = parameter(bias, n, 0, parameters + n);
  parallel_for(rows_of(x), rows_of_tile(n), [&](int64_t begin, int64_t end) {
    const bool plain = x.dtype == Dtype::f32 && y.dtype == Dtype::f32 && !normal;
    float* buffer = plain ? nullptr : scratch<float>(3 * n, Workspace::tile);
    for (int64_t r = begin; r < end; ++r) {
      const float* in = read_row(x, r, n, buffer);
      float* out = row_target(y, r, n, buffer + n);
      const Moments found = mean ? moments(in, n, eps, reduce_array<Sum>(in, n)) : moments_about_zero(in, n, eps);
      if (mean) mean.as<float>()[r] = found.mean;
      rstd.as<float>()[r] = found.rstd;
      if (normal) {
        float* kept = buffer + 2 * n;
        normalize_row(out, kept, in, found, g, b, n);
        store(normal.dtype, normal.data, r * n, 1, kept, n);
      } else {
        normalize_row(out, in, found, g, b, n);
      }
      finish_row(y, r, n, out);
      if (y_too) store(y_too.dtype, y_too.data, r * n, 1, out, n);
    }
  });
}

/// From normal, or x with the mean, which is absent for RMS norm.
void backward(const Summed& dx, const View& dx_too, const Summed& dgain, const Summed& dbias, const View& dy,
              const View& normal, const View& x, const View& mean, const View& rstd, const View& gain, bool centred) {
  const int64_t n = columns_of(dy), rows = rows_of(dy);
  float* partial = scratch<float>(partial_sums(rows, n, 2) + n, Workspace::call);
  const float* g = parameter(gain, n, 1, partial + partial_sums(rows, n, 2));
  sum_over_rows(rows, n, 4, {dgain, dbias}, partial, [&](int64_t begin, int64_t end, float** sums, float* buffer) {
    for (int64_t r = begin; r < end; ++r) {
      const float *gradient = read_row(dy, r, n, buffer), *in = read_row(normal ? normal : x, r, n, buffer + n);
      float* place = dx.view ? row_target(dx.view, r, n, buffer + 2 * n) : nullptr;
      float* out = dx.view && dx.beta != 0 ? buffer + 3 * n : place;
      const float scale = rstd.as<const float>()[r];
      const Moments m = normal ? Moments{0, 1} : Moments{mean ? mean.as<const float>()[r] : 0, scale};
      normalize_row_gradient<float>(out, {gradient}, {in}, m, scale, g, sums[0], sums[1], n, centred);
      if (!dx.view) continue;
      if (out != place) {
        const float* old = read_row(dx.view, r, n, place);
#pragma omp simd
        for (int64_t j = 0; j < n; ++j) place[j] = dx.beta * old[j] + out[j];
      }
      finish_row(dx.view, r, n, place);
      if (dx_too) store(dx_too.dtype, dx_too.data, r * n, 1, place, n);
    }
  });
}

void layer_norm(View y, View y_too, View normal, View mean, View rstd, View x, View gain, View bias, float eps) {
  forward(y, y_too, normal, mean, rstd, x, gain, bias, eps);
}
void layer_norm_backward(View dx, View dx_too, View dgain, View dbias, View dy, View normal, View x, View mean,
                         View rstd, View gain, float beta, float beta_gain, float beta_bias) {
  backward({dx, beta}, dx_too, {dgain, beta_gain}, {dbias, beta_bias}, dy, normal, x, mean, rstd, gain, true);
}
void rms_norm(View y, View y_too, View normal, View rstd, View x, View gain, float eps) {
  forward(y, y_too, normal, {}, rstd, x, gain, {}, eps);
}
void rms_norm_backward(View dx, View dx_too, View dgain, View dy, View normal, View x, View rstd, View gain, float beta,
                       float beta_gain) {
  backward({dx, beta}, dx_too, {dgain, beta_gain}, {View{}, 0}, dy, normal, x, {}, rstd, gain, false);
}

const InstallSimd layer_norm_here{kernels::layer_norm, layer_norm, floats_of_32_bits};
const InstallSimd layer_norm_backward_here{kernels::layer_norm_backward, layer_norm_backward, floats_of_32_bits};
const InstallSimd rms_norm_here{kernels::rms_norm, rms_norm, floats_of_32_bits};
const InstallSimd rms_norm_backward_here{kernels::rms_norm_backward, rms_norm_backward, floats_of_32_bits};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
