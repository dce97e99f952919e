// Rows of two and three operands, and those without a formula: fill, arange, accumulate.
#include <cmath>
#include <functional>
#include <type_traits>

#include "cinta/backends/cpu/simd/elementwise.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

template <class F, class T>
void binary_loop(T* y, const T* const* in, int64_t count, const void*) {
  const T *left = in[0], *right = in[1];
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<decltype(F{}(left[i], right[i])), bool>)
      y[i] = F{}(left[i], right[i]) ? T(1) : T(0);
    else
      y[i] = F{}(left[i], right[i]);
  }
}

/// Computes in float where all values are floats, in double otherwise.
template <class F>
void binary(View y, View left, View right) {
  if (fits_float(left.dtype) && fits_float(right.dtype) && fits_float(y.dtype))
    map<float>(y, {left, right}, binary_loop<F, float>, nullptr);
  else
    map<double>(y, {left, right}, binary_loop<F, double>, nullptr);
}

/// Compares integers as integers, narrow floats as floats, all else in double.
template <class F>
void compare(View y, View left, View right) {
  with_common(left, right, [&]<class T>() { map<T>(y, {left, right}, binary_loop<F, T>, nullptr); });
}

struct Power {
  template <class T>
  T operator()(T base, T exponent) const {
    return std::pow(base, exponent);
  }
};

const InstallSimd add{kernels::add, binary<std::plus<>>};
const InstallSimd subtract{kernels::subtract, binary<std::minus<>>};
const InstallSimd multiply{kernels::multiply, binary<std::multiplies<>>};
const InstallSimd divide{kernels::divide, binary<std::divides<>>};
const InstallSimd power{kernels::power, binary<Power>, floats_of_32_bits};
const InstallSimd equal{kernels::equal, compare<std::equal_to<>>};
const InstallSimd not_equal{kernels::not_equal, compare<std::not_equal_to<>>};
const InstallSimd less{kernels::less, compare<std::less<>>};
const InstallSimd less_equal{kernels::less_equal, compare<std::less_equal<>>};
const InstallSimd greater{kernels::greater, compare<std::greater<>>};
const InstallSimd greater_equal{kernels::greater_equal, compare<std::greater_equal<>>};

const InstallSimd accumulate{kernels::accumulate, [](View y, View x) { binary<std::plus<>>(y, y, x); }};

template <class T>
void where_loop(T* y, const T* const* in, int64_t count, const void*) {
  const T *condition = in[0], *left = in[1], *right = in[2];
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = condition[i] != 0 ? left[i] : right[i];
}
void where_rows(View y, View condition, View left, View right) {
  with_common(left, right, [&]<class T>() { map<T>(y, {condition, left, right}, where_loop<T>, nullptr); });
}
const InstallSimd where{kernels::where, where_rows};

template <class T>
void fill_loop(T* y, const T* const*, int64_t count, const void* context) {
  const T value = *static_cast<const T*>(context);
  for (int64_t i = 0; i < count; ++i) y[i] = value;
}
void fill_view(View y, double value) {
  const float narrow = static_cast<float>(value);
  const bool exact = narrow == value || value != value;  // else it would be rounded twice
  if (y.dtype == Dtype::f32 || (fits_float(y.dtype) && exact))
    map<float>(y, {}, fill_loop<float>, &narrow);
  else
    map<double>(y, {}, fill_loop<double>, &value);
}
const InstallSimd fill{kernels::fill, fill_view};

void number_view(View y, int64_t first, int64_t step) {
  int64_t* out = y.as<int64_t>();
  const int64_t count = y.numel();
  for (int64_t i = 0; i < count; ++i) out[i] = first + i * step;
}
const InstallSimd arange{kernels::arange, number_view};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
