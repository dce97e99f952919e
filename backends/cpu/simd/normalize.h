// One row of a normalisation and its gradient, shared by layer norm, RMS norm and the fused residual norm; and the loop
// over rows that adds up parameter gradients in a fixed order.
#pragma once
#include <cmath>
#include <limits>

#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/columns.h"
#include "cinta/backends/cpu/simd/rows.h"

#include "cinta/backends/cpu/isa_begin.h"

struct Moments {
  float mean, rstd;
};
/// The mean, whose n-th multiple is about `sum`, and 1 / sqrt(mean square deviation + eps). What the mean lacks is the
/// mean of what is left without it: of equal numbers nothing stays then, which a small eps would make much of.
inline Moments moments(const float* x, int64_t n, float eps, float sum) {
  const float count = static_cast<float>(n), near = sum / count;
  const Pair left = sums_of(n, [=](int64_t j) { return Pair{(x[j] - near) * (x[j] - near), x[j] - near}; });
  const float lacks = left.second / count, most = std::numeric_limits<float>::max();  // inf - inf would be NaN
  const float square = std::max(left.first / count - std::min(lacks * lacks, most), 0.0f);
  return {near + lacks, 1 / std::sqrt(square + eps)};
}
/// The same of a row that is not centred: by its squares, with a mean of 0.
inline Moments moments_about_zero(const float* x, int64_t n, float eps) {
  return {0, 1 / std::sqrt(sum_of(n, [=](int64_t j) { return x[j] * x[j]; }) / static_cast<float>(n) + eps)};
}

inline void normalize_row(float* y, const float* x, Moments m, const float* gain, const float* bias, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) y[j] = (x[j] - m.mean) * m.rstd * gain[j] + bias[j];
}
/// The same, which leaves what is normalised in `normal`, too; that may be x.
inline void normalize_row(float* y, float* normal, const float* x, Moments m, const float* gain, const float* bias,
                          int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    const float value = (x[j] - m.mean) * m.rstd;
    normal[j] = value;
    y[j] = value * gain[j] + bias[j];
  }
}

/// dx = scale * (d - mean(d) - normal * mean(d * normal)) with d = dy * gain, normal = (x - mean) * rstd; without
/// mean(d) unless `centred`. Adds dy * normal to dgain and dy to dbias. dx may be dy or x, or null.
template <class S>
inline void normalize_row_gradient(float* dx, Values<S> dy, Values<S> x, Moments m, float scale, const float* gain,
                                   float* dgain, float* dbias, int64_t n, bool centred) {
  const float mean = m.mean, rstd = m.rstd, count = static_cast<float>(n);
  const Pair sums = sums_of(n, [=](int64_t j) {
    const float normal = (x[j] - mean) * rstd, d = dy[j] * gain[j];
    dgain[j] += dy[j] * normal;
    dbias[j] += dy[j];
    return Pair{d * normal, d};
  });
  if (!dx) return;
  const float along = sums.first / count, middle = centred ? sums.second / count : 0;
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) dx[j] = scale * ((dy[j] * gain[j] - middle) - (x[j] - mean) * rstd * along);
}

/// A gradient that is summed over rows: sum + beta * what was there.
struct Summed {
  View view;
  float beta;
};

/// Calls rows(begin, end, sums, buffers) for fixed chunks of rows on all threads, where sums[i] has room for the
/// columns of gradient i and `buffers` for `buffer_rows` rows; then stores each gradient that is present.
template <int count, class Rows>
void sum_over_rows(int64_t rows, int64_t columns, int buffer_rows, const Summed (&gradients)[count], float* partial,
                   const Rows& body) {
  const int64_t chunk = std::clamp<int64_t>(rows_of_tile(columns), 8, 256);
  const int64_t chunks = (rows + chunk - 1) / chunk;
  parallel_for(rows, chunk, [&](int64_t begin, int64_t end) {
    float* memory = scratch<float>((count + buffer_rows) * columns, Workspace::tile);
    float* sums[count];
    for (int i = 0; i < count; ++i) sums[i] = memory + i * columns;
    std::fill_n(memory, count * columns, 0.0f);
    body(begin, end, sums, memory + count * columns);
    for (int i = 0; i < count; ++i)
      if (gradients[i].view) std::copy_n(sums[i], columns, partial + (i * chunks + begin / chunk) * columns);
  });
  for (int i = 0; i < count; ++i)
    if (const View& view = gradients[i].view; view && columns)
      combine<Sum>(view, Layout{view}, 0, partial + i * chunks * columns, chunks, gradients[i].beta);
}

/// Floats that sum_over_rows needs for `count` gradients.
inline int64_t partial_sums(int64_t rows, int64_t columns, int count) { return (rows / 8 + 1) * columns * count; }

#include "cinta/backends/cpu/isa_end.h"
