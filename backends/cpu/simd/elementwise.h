// How one line installs a unary or a binary row.
#pragma once
#include "cinta/backends/cpu/check.h"
#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/cpu/simd/map.h"
#include "cinta/backends/kernels/elementwise.h"

namespace cinta {

/// The two functions of a unary row. They are put together by the compiler, so that filling the table at start-up runs
/// no code that was compiled for another processor.
struct UnaryFunctions {
  void (*forward)(View y, View x, kernels::Scalars);
  void (*backward)(View dx, View dy, View x_or_y, kernels::Scalars);
};
template <int level>
struct InstallUnaryAtLevel {
  InstallUnaryAtLevel(kernels::UnaryRow& row, UnaryFunctions functions) {
    InstallAtLevel<level>(row.forward, functions.forward);
    InstallAtLevel<level>(row.backward, functions.backward);
  }
};

}  // namespace cinta

#include "cinta/backends/cpu/isa_begin.h"

using InstallUnary = InstallUnaryAtLevel<CINTA_ISA_LEVEL>;

/// A row's Scalars in the type that it computes in.
struct Numbers {
  float a, b;
};

template <class F>
void forward_loop(float* y, const float* const* in, int64_t count, const void* context) {
  const Numbers numbers = *static_cast<const Numbers*>(context);
  const float* x = in[0];
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = F{}(x[i], numbers);
}
template <class Slope>
void backward_loop(float* dx, const float* const* in, int64_t count, const void* context) {
  const Numbers numbers = *static_cast<const Numbers*>(context);
  const float *dy = in[0], *x_or_y = in[1];
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * Slope{}(x_or_y[i], numbers);
}

inline void map_floats(const View& y, std::initializer_list<View> inputs, kernels::Scalars s, Loop<float> loop) {
  require_narrow(y);
  for (const View& view : inputs) require_narrow(view);
  const Numbers numbers{static_cast<float>(s.a), static_cast<float>(s.b)};
  map(y, inputs, loop, &numbers);
}

/// The row of y = f(x, numbers) with the slope slope(x or y, numbers), as the row's Reads says.
template <class F, class Slope>
consteval UnaryFunctions unary(F, Slope) {
  return {[](View y, View x, kernels::Scalars s) { map_floats(y, {x}, s, forward_loop<F>); },
          [](View dx, View dy, View x_or_y, kernels::Scalars s) {
            map_floats(dx, {dy, x_or_y}, s, backward_loop<Slope>);
          }};
}

#include "cinta/backends/cpu/isa_end.h"
