// Softmax and its logarithm, with gradients: each row is read into the first caches once.
#include "cinta/backends/kernels/softmax.h"

#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/rows.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

/// Calls row(out, a, b, columns) with every row of the views; b may be absent and is null then.
template <class Row>
void each_row(const View& out, const View& a, const View& b, Row row) {
  const int64_t columns = columns_of(out);
  parallel_for(rows_of(out), rows_of_tile(columns), [&](int64_t begin, int64_t end) {
    const bool plain = out.dtype == Dtype::f32 && a.dtype == Dtype::f32 && (!b || b.dtype == Dtype::f32);
    float* buffer = plain ? nullptr : scratch<float>(3 * columns, Workspace::tile);
    for (int64_t r = begin; r < end; ++r) {
      float* y = row_target(out, r, columns, buffer);
      const float* left = read_row(a, r, columns, buffer + columns);
      row(y, left, b ? read_row(b, r, columns, buffer + 2 * columns) : nullptr, columns);
      finish_row(out, r, columns, y);
    }
  });
}

void softmax(View y, View x) {
  each_row(y, x, {}, [](float* out, const float* in, const float*, int64_t n) {
    const float scale = 1 / exp_and_sum(out, in, reduce_array<MaxOfNumbers>(in, n), n);
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) out[j] *= scale;
  });
}

void softmax_backward(View dx, View dy, View y) {
  each_row(dx, dy, y, [](float* out, const float* gradient, const float* p, int64_t n) {
    const float along = sum_of(n, [=](int64_t j) { return gradient[j] * p[j]; });
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) out[j] = p[j] * (gradient[j] - along);
  });
}

void log_softmax(View y, View x) {
  each_row(y, x, {}, [](float* out, const float* in, const float*, int64_t n) {
    const float largest = reduce_array<MaxOfNumbers>(in, n);
    const float rest = math::log(sum_of(n, [=](int64_t j) { return math::exp_below(in[j] - largest); }));
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) out[j] = (in[j] - largest) - rest;
  });
}

void log_softmax_backward(View dx, View dy, View y) {
  each_row(dx, dy, y, [](float* out, const float* gradient, const float* logs, int64_t n) {
    const float total = reduce_array<Sum>(gradient, n);
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) out[j] = gradient[j] - math::exp_below(logs[j]) * total;
  });
}

const InstallSimd softmax_here{kernels::softmax, softmax, floats_of_32_bits};
const InstallSimd softmax_backward_here{kernels::softmax_backward, softmax_backward, floats_of_32_bits};
const InstallSimd log_softmax_here{kernels::log_softmax, log_softmax, floats_of_32_bits};
const InstallSimd log_softmax_backward_here{kernels::log_softmax_backward, log_softmax_backward, floats_of_32_bits};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
