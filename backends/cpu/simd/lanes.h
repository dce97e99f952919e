// Reductions of an array in a fixed order that vectorises: element i goes to lane i mod 32, then the lanes are folded.
#pragma once
#include <cstdint>
#include <limits>

#include "cinta/backends/cpu/isa_begin.h"

/// What is reduced to what: the start, an element added to a lane, two lanes made one.
struct Sum {
  static constexpr double start = 0;
  template <class T>
  static T add(T lane, T x) {
    return lane + x;
  }
  template <class T>
  static T merge(T a, T b) {
    return a + b;
  }
};
struct SumOfSquares : Sum {
  template <class T>
  static T add(T lane, T x) {
    return lane + x * x;
  }
};
/// NaN wins.
struct Max {
  static constexpr double start = -std::numeric_limits<double>::infinity();
  template <class T>
  static T add(T lane, T x) {
    return (x <= lane) | (lane != lane) ? lane : x;
  }
  template <class T>
  static T merge(T a, T b) {
    return add(a, b);
  }
};

/// For arrays whose NaN are found by what is done with the result: one instruction.
struct MaxOfNumbers {
  static constexpr double start = -std::numeric_limits<double>::infinity();
  template <class T>
  static T add(T lane, T x) {
    return lane > x ? lane : x;
  }
  template <class T>
  static T merge(T a, T b) {
    return add(a, b);
  }
};

/// `count` lanes as one: the second half is merged into the first until one is left. The counts are the compiler's, as
/// short rows take no longer than this would in loops.
template <class Op, int64_t count, class T>
inline T fold(const T* lanes) {
  if constexpr (count == 1) {
    return lanes[0];
  } else {
    T merged[count / 2];
#pragma omp simd
    for (int64_t j = 0; j < count / 2; ++j) merged[j] = Op::merge(lanes[j], lanes[j + count / 2]);
    return fold<Op, count / 2>(merged);
  }
}

/// All of x[0..count), computed in T. x is a pointer, or is read like one.
template <class Op, class T, class X>
T reduce_array_in(X x, int64_t count) {
  constexpr int64_t width = 32;
  T lanes[width];
  for (T& lane : lanes) lane = static_cast<T>(Op::start);
  int64_t i = 0;
  for (; i + width <= count; i += width) {
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) lanes[j] = Op::add(lanes[j], static_cast<T>(x[i + j]));
  }
  for (int64_t j = 0; i < count; ++i, ++j) lanes[j] = Op::add(lanes[j], static_cast<T>(x[i]));
  return fold<Op, width>(lanes);
}
template <class Op, class T>
T reduce_array(const T* x, int64_t count) {
  return reduce_array_in<Op, T>(x, count);
}

#include "cinta/backends/cpu/isa_end.h"
