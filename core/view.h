// What kernels see of a tensor: pointer, sizes, strides, type. Trivially copyable; owns nothing, knows no tape.
#pragma once
#include <utility>

#include "cinta/core/dtype.h"
#include "cinta/core/shape.h"

namespace cinta {

struct View {
  void* data = nullptr;
  Shape shape, strides;  ///< strides in elements; 0 where a value is repeated
  Dtype dtype = Dtype::f32;
  bool present = false;  ///< false for an optional operand that was not given

  explicit operator bool() const { return present; }
  int rank() const { return shape.rank(); }
  int64_t numel() const { return shape.numel(); }
  /// Size of a dimension, counted from the end when negative.
  int64_t size(int dim) const { return shape[dim < 0 ? dim + shape.rank() : dim]; }
  int64_t stride(int dim) const { return strides[dim < 0 ? dim + shape.rank() : dim]; }
  /// The same elements with the last two dimensions exchanged.
  View transposed() const {
    View turned = *this;
    const int last = rank() - 1;
    std::swap(turned.shape[last], turned.shape[last - 1]);
    std::swap(turned.strides[last], turned.strides[last - 1]);
    return turned;
  }
  /// True iff the elements lie row-major without gaps.
  bool contiguous() const {
    int64_t expected = 1;
    for (int i = shape.rank() - 1; i >= 0; --i) {
      if (shape[i] != 1 && strides[i] != expected) return shape.numel() == 0;
      expected *= shape[i];
    }
    return true;
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

}  // namespace cinta
