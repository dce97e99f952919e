// How one line installs a unary or a binary row.
#pragma once
#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/cpu/simd/map.h"
#include "cinta/backends/kernels/elementwise.h"

namespace cinta {

/// The two functions of a unary row. They are put together by the compiler, so that filling the table at start-up runs
/// no code that was compiled for another processor.
struct UnaryFunctions {
  void (*forward)(View y, View x, kernels::Scalars);
  void (*backward)(View dx, View dy, View x_or_y, kernels::Scalars);
  FloatTypes floats;
};
template <int level>
struct InstallUnaryAtLevel {
  InstallUnaryAtLevel(kernels::UnaryRow& row, UnaryFunctions functions) {
    InstallAtLevel<level>(row.forward, functions.forward, functions.floats);
    InstallAtLevel<level>(row.backward, functions.backward, functions.floats);
  }
};

}  // namespace cinta

#include "cinta/backends/cpu/isa_begin.h"

using InstallUnary = InstallUnaryAtLevel<CINTA_ISA_LEVEL>;

/// A row's Scalars in the type that it computes in.
template <class T>
struct NumbersIn {
  T a, b;
};
using Numbers = NumbersIn<float>;

template <class T, class F>
void forward_loop(T* y, const T* const* in, int64_t count, const void* context) {
  const NumbersIn<T> numbers = *static_cast<const NumbersIn<T>*>(context);
  const T* x = in[0];
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = F{}(x[i], numbers);
}
template <class T, class Slope>
void backward_loop(T* dx, const T* const* in, int64_t count, const void* context) {
  const NumbersIn<T> numbers = *static_cast<const NumbersIn<T>*>(context);
  const T *dy = in[0], *x_or_y = in[1];
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * Slope{}(x_or_y[i], numbers);
}

template <class T>
void map_numbers(const View& y, std::initializer_list<View> inputs, kernels::Scalars s, Loop<T> loop) {
  const NumbersIn<T> numbers{static_cast<T>(s.a), static_cast<T>(s.b)};
  map(y, inputs, loop, &numbers);
}

/// The row of y = f(x, numbers) with the slope slope(x or y, numbers), as the row's Reads says. Formulas for any type
/// (auto) take f64 too; those in float are of types that fit it.
template <class F, class Slope>
consteval UnaryFunctions unary(F, Slope) {
  constexpr bool any_type = std::is_invocable_v<F, double, NumbersIn<double>>;
  return {[](View y, View x, kernels::Scalars s) {
            if constexpr (any_type)
              if (!fits_float(x.dtype)) return map_numbers(y, {x}, s, forward_loop<double, F>);
            map_numbers(y, {x}, s, forward_loop<float, F>);
          },
          [](View dx, View dy, View x_or_y, kernels::Scalars s) {
            if constexpr (any_type)
              if (!fits_float(dy.dtype)) return map_numbers(dx, {dy, x_or_y}, s, backward_loop<double, Slope>);
            map_numbers(dx, {dy, x_or_y}, s, backward_loop<float, Slope>);
          },
          any_type ? all_floats : floats_of_32_bits};
}

#include "cinta/backends/cpu/isa_end.h"
