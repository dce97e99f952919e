// What every reference kernel is written with: single elements of a view as doubles, positions, and sub-views.
// Slow and obvious on purpose; this column is the oracle that the others are held against.
#pragma once
#include <cmath>
#include <concepts>
#include <vector>

#include "cinta/backends/kernel.h"

namespace cinta::oracle {

/// A position in a view: one number a dimension.
using Index = Shape;

/// The float that makes a second rounding harmless: of the two neighbours of `value` the one with an odd last bit.
inline float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (nearest == value || std::isnan(value)) return nearest;
  const float toward_zero = std::abs(nearest) > std::abs(value) ? std::nextafter(nearest, 0.0f) : nearest;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(toward_zero) | 1u);
}

/// `value` in type T, rounded once (truncated for integers, != 0 for bool).
template <class T>
T rounded(double value) {
  if constexpr (std::is_same_v<T, bool>)
    return value != 0;
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return T(round_to_odd(value));
}

/// One element of a view: reads as a double, is rounded once when assigned.
class Element {
 public:
  Element(const View& view, int64_t offset)
      : data_(static_cast<char*>(view.data) + offset * size_of(view.dtype)), dtype_(view.dtype) {}
  operator double() const {
    return visit(dtype_, [this]<class T>() { return static_cast<double>(*reinterpret_cast<const T*>(data_)); });
  }
  const Element& operator=(double value) const {
    visit(dtype_, [this, value]<class T>() { *reinterpret_cast<T*>(data_) = rounded<T>(value); });
    return *this;
  }
  const Element& operator=(const Element& other) const { return *this = static_cast<double>(other); }
  const Element& operator+=(double value) const { return *this = *this + value; }
  const Element& operator-=(double value) const { return *this = *this - value; }
  /// The exact value of an element of integer type.
  int64_t integer() const {
    return visit(dtype_, [this]<class T>() { return static_cast<int64_t>(*reinterpret_cast<const T*>(data_)); });
  }
  /// The element becomes `code`, which is of its type.
  template <class T>
  void set(T code) const {
    *reinterpret_cast<T*>(data_) = code;
  }
  void set_integer(int64_t value) const {
    visit(dtype_, [this, value]<class T>() {
      if constexpr (std::is_integral_v<T>) *reinterpret_cast<T*>(data_) = static_cast<T>(value);
    });
  }

 private:
  char* data_;
  Dtype dtype_;
};

inline Element at(const View& view, const Index& index) {
  int64_t offset = 0;
  for (int dim = 0; dim < view.rank(); ++dim) offset += index[dim] * view.strides[dim];
  return {view, offset};
}
template <std::convertible_to<int64_t>... Numbers>
Element at(const View& view, Numbers... index) {
  return at(view, Index{static_cast<int64_t>(index)...});
}
/// The element at row-major position `position`.
inline Element nth(const View& view, int64_t position) {
  Index index = view.shape;
  for (int dim = view.rank() - 1; dim >= 0; --dim) {
    index[dim] = position % view.shape[dim];
    position /= view.shape[dim];
  }
  return at(view, index);
}

/// All positions of a shape in row-major order: `for (const Index& i : Indices(y.shape))`.
class Indices {
 public:
  explicit Indices(const Shape& shape) : shape_(shape) {}
  struct Iterator {
    Shape shape;
    Index index;
    int64_t left;
    const Index& operator*() const { return index; }
    bool operator!=(const Iterator& other) const { return left != other.left; }
    Iterator& operator++() {
      --left;
      for (int dim = shape.rank() - 1; dim >= 0 && ++index[dim] == shape[dim]; --dim) index[dim] = 0;
      return *this;
    }
  };
  Iterator begin() const { return {shape_, Index::filled(shape_.rank(), 0), shape_.numel()}; }
  Iterator end() const { return {shape_, Index::filled(shape_.rank(), 0), 0}; }

 private:
  Shape shape_;
};

/// The first `count` sizes of a shape.
inline Shape leading(const Shape& shape, int count) {
  return Shape(std::span<const int64_t>(shape.begin(), static_cast<size_t>(count)));
}

/// The part of `view` at the given leading position: a row of a matrix, a matrix of a batch.
inline View part(const View& view, const Index& lead) {
  View out = view;
  int64_t offset = 0;
  for (int dim = 0; dim < lead.rank(); ++dim) offset += lead[dim] * view.strides[dim];
  out.data = static_cast<char*>(view.data) + offset * size_of(view.dtype);
  out.shape = out.strides = Shape{};
  for (int dim = lead.rank(); dim < view.rank(); ++dim) {
    out.shape.push_back(view.shape[dim]);
    out.strides.push_back(view.strides[dim]);
  }
  return out;
}

/// The elements of a view of rank 1. An absent view reads as `count` times `otherwise`.
inline std::vector<double> values(const View& row, int64_t count, double otherwise) {
  std::vector<double> out(static_cast<size_t>(count), otherwise);
  for (int64_t i = 0; row && i < count; ++i) out[i] = at(row, i);
  return out;
}
inline std::vector<double> values(const View& row) { return values(row, row.size(0), 0); }

/// The rows of a matrix.
inline std::vector<std::vector<double>> rows(const View& matrix) {
  std::vector<std::vector<double>> out;
  for (int64_t i = 0; i < matrix.size(0); ++i) out.push_back(values(part(matrix, {i})));
  return out;
}
inline double inner_product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// element = value + beta * element, where with beta 0 the old value is never read.
inline void blend(const Element& element, double value, double beta) {
  element = beta == 0 ? value : value + beta * element;
}
/// The same for a row of elements; nothing for an absent view.
inline void blend(const View& row, const std::vector<double>& values, double beta) {
  for (int64_t i = 0; row && i < row.size(0); ++i) blend(at(row, i), values[i], beta);
}

}  // namespace cinta::oracle
