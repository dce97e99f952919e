// What follows a layer's product: the activation and its slopes in one pass, and the gradient in one pass with the sums
// that are the bias's.
#include "cinta/backends/cpu/simd/activation.h"
#include "cinta/backends/cpu/simd/columns.h"
#include "cinta/backends/cpu/simd/rows.h"
#include "cinta/backends/cpu/simd/stream.h"
#include "cinta/backends/kernels/matmul.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

using kernels::Activation;

/// Calls f with the function of `activation` that gives its Curve, to the precision of results in `bytes`.
template <class F>
void with_curve(Activation activation, int64_t bytes, F f) {
  switch (activation) {
    case Activation::none:
      return f([](float x) { return Curve{x, 1}; });
    case Activation::relu:
      return f([](float x) { return Curve{relu_value(x), relu_slope(x)}; });
    case Activation::gelu:
      if (bytes < 4) return f([](float x) { return narrow_gelu_curve(x); });
      return f([](float x) { return gelu_curve(x); });
    case Activation::gelu_tanh:
      return f([](float x) { return gelu_tanh_curve(x); });
    case Activation::silu:
      return f([](float x) { return silu_curve(x); });
    case Activation::tanh:
      return f([](float x) { return tanh_curve(x); });
  }
}

template <class S, class F>
void forward_with(F curve, const View& y, const View& slope, const View& x) {
  const int64_t columns = x.size(-1), rows = columns ? x.numel() / columns : 0;
  const PartsOfRows results(y);
  column_sums(rows, columns, View{}, 0, [&](int64_t row, int64_t first, int64_t count, float*) {
    alignas(64) float buffer[column_step];
    float slopes[column_step];
    const Values<S> in = part_values<S>(x, row, first, count, buffer);
    float* out = results.begin(row, first, buffer);
    if (slope) {
      float* rise = part_target(slope, row, first, slopes);
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) {
        const Curve at = curve(in[j]);
        out[j] = at.value;
        rise[j] = at.slope;
      }
      finish_part(slope, row, first, count, rise);
    } else {
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) out[j] = curve(in[j]).value;
    }
    results.finish(row, first, count, out);
  });
}

void forward(View y, View slope, View x, Activation activation) {
  with_curve(activation, std::max(size_of(y.dtype), slope ? size_of(slope.dtype) : 0),
             [&](auto curve) { with_read_type({x}, [&]<class S>() { forward_with<S>(curve, y, slope, x); }); });
}

template <class S>
void backward_with(const View& dx, const View& dbias, const View& dy, const View& slope, float beta) {
  const int64_t columns = dy.size(-1), rows = columns ? dy.numel() / columns : 0;
  const PartsOfRows results(dx);
  column_sums(rows, columns, dbias, beta, [&](int64_t row, int64_t first, int64_t count, float* lanes) {
    alignas(64) float buffer[column_step];
    float gradient[column_step];
    const Values<S> rise = part_values<S>(slope, row, first, count, buffer),
                    dout = part_values<S>(dy, row, first, count, gradient);
    float* out = results.begin(row, first, buffer);
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) {
      const float value = dout[j] * rise[j];
      out[j] = value;
      lanes[j] += value;
    }
    results.finish(row, first, count, out);
  });
}

void backward(View dx, View dbias, View dy, View slope, float beta) {
  with_read_type({dy, slope}, [&]<class S>() { backward_with<S>(dx, dbias, dy, slope, beta); });
}

const InstallSimd activation{kernels::activation, forward, floats_of_32_bits};
const InstallSimd activation_backward{kernels::activation_backward, backward, floats_of_32_bits};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
