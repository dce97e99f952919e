// Normalisation, row by row.
#include "cinta/backends/kernels/normalize.h"

#include "cinta/backends/reference/dropout.h"
#include "cinta/backends/reference/element.h"

namespace cinta::oracle {
namespace {

using kernels::Dropout;
using Row = std::vector<double>;

double mean_of(const Row& row) {
  double sum = 0;
  for (double x : row) sum += x;
  return sum / static_cast<double>(row.size());
}

double mean_of_products(const Row& a, const Row& b) { return inner_product(a, b) / static_cast<double>(a.size()); }

/// Adds a * b to `sums`, element by element.
void add_products(Row& sums, const Row& a, const Row& b) {
  for (size_t j = 0; j < sums.size(); ++j) sums[j] += a[j] * b[j];
}

void add_to(Row& sums, const Row& a) {
  for (size_t j = 0; j < sums.size(); ++j) sums[j] += a[j];
}

/// y = (x - mean) * rstd * gain + bias of one row; writes down what it found for mean and rstd.
void normalize_row(const View& y, const Row& x, const View& gain, const View& bias, const Element& mean,
                   const Element& rstd, double eps) {
  const int64_t n = y.size(0);
  const Row g = values(gain, n, 1), b = values(bias, n, 0);
  Row centred = x;
  const double middle = mean_of(x);
  for (double& c : centred) c -= middle;
  const double scale = 1 / std::sqrt(mean_of_products(centred, centred) + eps);
  mean = middle;
  rstd = scale;
  for (int64_t j = 0; j < n; ++j) at(y, j) = centred[j] * scale * g[j] + b[j];
}

/// (x - mean) * rstd
Row standardized(Row x, double mean, double rstd) {
  for (double& value : x) value = (value - mean) * rstd;
  return x;
}

/// Gradient of x from d = dy * gain: rstd * (d - mean(d) - normal * mean(d * normal)), normal = (x - mean) * rstd.
Row normalize_row_gradient(const Row& dy, const Row& gain, const Row& normal, double rstd) {
  Row d = dy;
  for (size_t j = 0; j < d.size(); ++j) d[j] *= gain[j];
  const double middle = mean_of(d), along = mean_of_products(d, normal);
  for (size_t j = 0; j < d.size(); ++j) d[j] = rstd * (d[j] - middle - normal[j] * along);
  return d;
}

void layer_norm_rows(View y, View y_too, View normal, View mean, View rstd, View x, View gain, View bias, float eps) {
  for (int64_t r = 0; r < x.size(0); ++r) {
    normalize_row(part(y, {r}), values(part(x, {r})), gain, bias, at(mean, r), at(rstd, r), eps);
    if (y_too) blend(part(y_too, {r}), values(part(y, {r})), 0);
    if (normal) blend(part(normal, {r}), standardized(values(part(x, {r})), at(mean, r), at(rstd, r)), 0);
  }
}

/// A row of `kept`, or where that is absent, of x.
Row standardized(const View& kept, const View& x, int64_t r, double mean, double rstd) {
  return kept ? values(part(kept, {r})) : standardized(values(part(x, {r})), mean, rstd);
}

/// Adds to a row of dx, which may be absent, and writes what that comes to into dx_too.
void finish_row(const View& dx, const View& dx_too, int64_t r, const Row& gradient, double beta) {
  if (dx) blend(part(dx, {r}), gradient, beta);
  if (dx_too) blend(part(dx_too, {r}), values(part(dx, {r})), 0);
}

void layer_norm_gradients(View dx, View dx_too, View dgain, View dbias, View dy, View kept, View x, View mean,
                          View rstd, View gain, float beta, float beta_gain, float beta_bias) {
  const int64_t n = dy.size(1);
  Row gain_sums(static_cast<size_t>(n), 0), bias_sums = gain_sums;
  for (int64_t r = 0; r < dy.size(0); ++r) {
    const Row d = values(part(dy, {r})), normal = standardized(kept, x, r, kept ? 0 : double{at(mean, r)}, at(rstd, r));
    finish_row(dx, dx_too, r, normalize_row_gradient(d, values(gain, n, 1), normal, at(rstd, r)), beta);
    add_products(gain_sums, d, normal);
    add_to(bias_sums, d);
  }
  blend(dgain, gain_sums, beta_gain);
  blend(dbias, bias_sums, beta_bias);
}

void rms_norm_rows(View y, View y_too, View normal, View rstd, View x, View gain, float eps) {
  const int64_t n = x.size(1);
  const Row g = values(gain, n, 1);
  for (int64_t r = 0; r < x.size(0); ++r) {
    const Row row = values(part(x, {r}));
    const double scale = 1 / std::sqrt(mean_of_products(row, row) + eps);
    at(rstd, r) = scale;
    for (int64_t j = 0; j < n; ++j) at(y, r, j) = row[j] * scale * g[j];
    if (y_too) blend(part(y_too, {r}), values(part(y, {r})), 0);
    if (normal) blend(part(normal, {r}), standardized(row, 0, scale), 0);
  }
}

/// dx = rstd * (d - normal * mean(d * normal)) with d = dy * gain, normal = x * rstd.
void rms_norm_gradients(View dx, View dx_too, View dgain, View dy, View kept, View x, View rstd, View gain, float beta,
                        float beta_gain) {
  const int64_t n = dy.size(1);
  const Row g = values(gain, n, 1);
  Row gain_sums(static_cast<size_t>(n), 0);
  for (int64_t r = 0; r < dy.size(0); ++r) {
    Row d = values(part(dy, {r}));
    const Row normal = standardized(kept, x, r, 0, at(rstd, r));
    add_products(gain_sums, d, normal);
    for (int64_t j = 0; j < n; ++j) d[j] *= g[j];
    const double along = mean_of_products(d, normal);
    for (size_t j = 0; j < d.size(); ++j) d[j] = at(rstd, r) * (d[j] - normal[j] * along);
    finish_row(dx, dx_too, r, d, beta);
  }
  blend(dgain, gain_sums, beta_gain);
}

void residual_norm_rows(View y, View y_too, View normal, View mean, View rstd, View x, View x_bias, View residual,
                        View gain, View bias, float eps, Dropout dropout) {
  const int64_t n = x.size(1);
  const Row added = values(x_bias, n, 0);
  for (int64_t r = 0; r < x.size(0); ++r) {
    Row total = values(part(residual, {r}));
    for (int64_t j = 0; j < n; ++j) total[j] += mask(dropout, r, j, n) * (at(x, r, j) + added[j]);
    normalize_row(part(y, {r}), total, gain, bias, at(mean, r), at(rstd, r), eps);
    blend(part(normal, {r}), standardized(total, mean_of(total), at(rstd, r)), 0);
    if (y_too) blend(part(y_too, {r}), values(part(y, {r})), 0);
  }
}

void residual_norm_gradients(View dx, View dresidual, View dx_bias, View dgain, View dbias, View dy, View normal,
                             View rstd, View gain, Dropout dropout, float beta_x_bias, float beta_gain,
                             float beta_bias) {
  const int64_t n = normal.size(1);
  Row gain_sums(static_cast<size_t>(n), 0), bias_sums = gain_sums, x_bias_sums = gain_sums;
  for (int64_t r = 0; r < normal.size(0); ++r) {
    const Row d = values(part(dy, {r})), kept = values(part(normal, {r}));
    Row gradient = normalize_row_gradient(d, values(gain, n, 1), kept, at(rstd, r));
    blend(part(dresidual, {r}), gradient, 0);
    for (int64_t j = 0; j < n; ++j) gradient[j] *= mask(dropout, r, j, n);
    if (dx) blend(part(dx, {r}), gradient, 0);
    add_products(gain_sums, d, kept);
    add_to(bias_sums, d);
    add_to(x_bias_sums, gradient);
  }
  blend(dx_bias, x_bias_sums, beta_x_bias);
  blend(dgain, gain_sums, beta_gain);
  blend(dbias, bias_sums, beta_bias);
}

const Install layer_norm{kernels::layer_norm, reference, layer_norm_rows};
const Install layer_norm_backward{kernels::layer_norm_backward, reference, layer_norm_gradients};
const Install rms_norm{kernels::rms_norm, reference, rms_norm_rows};
const Install rms_norm_backward{kernels::rms_norm_backward, reference, rms_norm_gradients};
const Install residual_norm{kernels::residual_norm, reference, residual_norm_rows};
const Install residual_norm_backward{kernels::residual_norm_backward, reference, residual_norm_gradients};

}  // namespace
}  // namespace cinta::oracle
