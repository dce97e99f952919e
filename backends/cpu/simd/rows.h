// Rows of contiguous matrices, and parts of rows that may lie apart, as arrays of floats, and the sums over a row that
// several kernels share.
#pragma once
#include <algorithm>

#include "cinta/backends/cpu/layout.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/convert.h"
#include "cinta/backends/cpu/simd/lanes.h"
#include "cinta/backends/cpu/simd/math.h"
#include "cinta/core/view.h"

#include "cinta/backends/cpu/isa_begin.h"

/// The last dimension, and all others together.
inline int64_t columns_of(const View& matrix) { return matrix.rank() ? matrix.size(-1) : 1; }
inline int64_t rows_of(const View& matrix) {
  const int64_t columns = columns_of(matrix);
  return columns ? matrix.numel() / columns : 0;
}

/// Stored numbers as floats: a loop that computes with bf16 converts them as it goes.
template <class S>
struct Values {
  const S* data;
  float operator[](int64_t i) const { return value_of(data[i]); }
};
/// True iff what a loop reads has 16 bits, so that in between few more are needed.
template <class S>
inline constexpr bool is_narrow = sizeof(S) == 2;

/// Calls f<S>() with the type that its loops read: bf16 if that is what all of these hold, or else float, which other
/// types are first converted to.
template <class F>
void with_read_type(std::initializer_list<View> views, F f) {
  const bool halves = std::ranges::all_of(views, [](const View& v) { return !v || v.dtype == Dtype::bf16; });
  halves ? f.template operator()<bf16>() : f.template operator()<float>();
}

/// A parameter of the last dimension as floats: converted into `buffer`, or `otherwise` in all columns when absent.
inline const float* parameter(const View& view, int64_t columns, float otherwise, float* buffer) {
  if (view)
    load(buffer, view.dtype, view.data, 0, view.stride(-1), columns);
  else
    std::fill_n(buffer, columns, otherwise);
  return buffer;
}

/// Row `row` of `matrix`: where it lies if it holds floats, else the buffer that it was converted into.
inline const float* read_row(const View& matrix, int64_t row, int64_t columns, float* buffer) {
  if (matrix.dtype == Dtype::f32) return matrix.as<const float>() + row * columns;
  load(buffer, matrix.dtype, matrix.data, row * columns, 1, columns);
  return buffer;
}
/// The same by the type that with_read_type found.
template <class S>
Values<S> row_values(const View& matrix, int64_t row, int64_t columns, [[maybe_unused]] float* buffer) {
  if constexpr (std::is_same_v<S, float>)
    return {read_row(matrix, row, columns, buffer)};
  else
    return {matrix.as<const S>() + row * columns};
}
/// Where a row is to be written: in place, or in the buffer that finish_row stores.
inline float* row_target(const View& matrix, int64_t row, int64_t columns, float* buffer) {
  return matrix.dtype == Dtype::f32 ? matrix.as<float>() + row * columns : buffer;
}
inline void finish_row(const View& matrix, int64_t row, int64_t columns, const float* values) {
  if (matrix.dtype != Dtype::f32) store(matrix.dtype, matrix.data, row * columns, 1, values, columns);
}

/// `count` elements of a row from `first` on: where they lie if they are of type S, else the buffer they were converted
/// into. Rows may lie apart.
template <class S>
Values<S> part_of_row(const View& matrix, int64_t row, int64_t first, int64_t count, [[maybe_unused]] float* buffer) {
  const int64_t offset = row_offset(matrix, row) + first;
  if constexpr (std::is_same_v<S, float>)
    if (matrix.dtype != Dtype::f32) {
      load(buffer, matrix.dtype, matrix.data, offset, 1, count);
      return {buffer};
    }
  return {matrix.as<const S>() + offset};
}
/// The same, and the next ones are fetched meanwhile: so few that all lines can be asked for at once.
template <class S>
Values<S> part_values(const View& matrix, int64_t row, int64_t first, int64_t count, float* buffer) {
  const int64_t next = row_offset(matrix, row) + first + count, item = size_of(matrix.dtype);
  prefetch(matrix.as<const char>() + next * item, count * item);
  return part_of_row<S>(matrix, row, first, count, buffer);
}
/// Where they are to be written: in place, or in the buffer that finish_part stores.
inline float* part_target(const View& matrix, int64_t row, int64_t first, float* buffer) {
  return matrix.dtype == Dtype::f32 ? matrix.as<float>() + row_offset(matrix, row) + first : buffer;
}
inline void finish_part(const View& matrix, int64_t row, int64_t first, int64_t count, const float* values) {
  if (matrix.dtype != Dtype::f32) store(matrix.dtype, matrix.data, row_offset(matrix, row) + first, 1, values, count);
}

/// Sum of term(i) for i < count, in the order of lanes.h. A term may also write down what it computed. before(i, 32) is
/// called before each whole 32 of them, from term i on.
template <class Term, class Before>
inline float sum_of(int64_t count, Term term, Before before) {
  constexpr int64_t width = 32;
  float lanes[width]{};
  int64_t i = 0;
  for (; i + width <= count; i += width) {
    before(i, width);
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) lanes[j] += term(i + j);
  }
  for (int64_t j = 0; i < count; ++i, ++j) lanes[j] += term(i);
  return fold<Sum, width>(lanes);
}

template <class Term>
inline float sum_of(int64_t count, Term term) {
  return sum_of(count, term, [](int64_t, int64_t) {});
}

/// Two such sums in one pass: of term(i).first and of term(i).second.
struct Pair {
  float first, second;
};
template <class Term>
inline Pair sums_of(int64_t count, Term term) {
  constexpr int64_t width = 32;
  float first[width]{}, second[width]{};
  int64_t i = 0;
  for (; i + width <= count; i += width) {
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) {
      const Pair terms = term(i + j);
      first[j] += terms.first;
      second[j] += terms.second;
    }
  }
  for (int64_t j = 0; i < count; ++i, ++j) {
    const Pair terms = term(i);
    first[j] += terms.first;
    second[j] += terms.second;
  }
  return {fold<Sum, width>(first), fold<Sum, width>(second)};
}

/// out = e^(x - shift), which is also summed. out may be x.
inline float exp_and_sum(float* out, const float* x, float shift, int64_t count) {
  return sum_of(count, [=](int64_t i) { return out[i] = math::exp_below(x[i] - shift); });
}

#include "cinta/backends/cpu/isa_end.h"
