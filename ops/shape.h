// Making tensors, and another layout of the same elements: views where possible. A view shares memory and version.
#pragma once
#include "cinta/core/tensor.h"

namespace cinta {

/// `value` in every element; of a fraction whole numbers take the whole part. Throws ValueError for one that `dtype`,
/// of whole numbers, cannot hold.
Tensor full(const Shape& shape, double value, Dtype dtype = Dtype::f32, Device device = cpu,
            Where where = Where::current());
inline Tensor zeros(const Shape& shape, Dtype dtype = Dtype::f32, Device device = cpu, Where where = Where::current()) {
  return full(shape, 0, dtype, device, where);
}

/// first, first + step, .. as i64[count]. Throws ValueError where one does not fit.
Tensor arange(int64_t count, int64_t first = 0, int64_t step = 1, Device device = cpu, Where where = Where::current());

/// Row-major copy, or x itself if it is so already.
Tensor contiguous(const Tensor& x, Where where = Where::current());
/// One size may be -1. A view where strides allow, else a copy.
Tensor reshape(const Tensor& x, Shape shape, Where where = Where::current());
/// Dimension i of the result is dimension order[i] of x.
Tensor permute(const Tensor& x, const std::vector<int>& order, Where where = Where::current());
Tensor transpose(const Tensor& x, int first, int second, Where where = Where::current());
/// Elements [begin, end) of a dimension; negative numbers count from the end.
Tensor slice(const Tensor& x, int dim, int64_t begin, int64_t end, Where where = Where::current());
/// Repeats size-1 (or missing leading) dimensions without copying.
Tensor expand(const Tensor& x, const Shape& shape, Where where = Where::current());
/// Removes a dimension of size 1; adds one.
Tensor squeeze(const Tensor& x, int dim, Where where = Where::current());
Tensor unsqueeze(const Tensor& x, int dim, Where where = Where::current());

/// Joins along an existing dimension.
Tensor concat(const std::vector<Tensor>& parts, int dim, Where where = Where::current());
/// Views of `sizes` elements along `dim`; the sizes add up to x's.
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int dim, Where where = Where::current());
/// Adds `before` and `after` elements of `value` along `dim`.
Tensor pad(const Tensor& x, int dim, int64_t before, int64_t after, double value = 0, Where where = Where::current());

/// Another storage type; the gradient is cast back. x itself if it has the type.
Tensor cast(const Tensor& x, Dtype dtype, Where where = Where::current());
/// Another device; the gradient is moved back. x itself if it lies there.
Tensor to(const Tensor& x, Device device, Where where = Where::current());

/// Product of all sizes but the last.
int64_t leading_rows(const Shape& shape);

/// In place, outside the tape: throws ValueError when x is tracked and recording is on. Tensors saved for backward that
/// share x's memory are found out when backward reads them. fill_ takes the values that full() does.
void fill_(const Tensor& x, double value, Where where = Where::current());
void copy_(const Tensor& x, const Tensor& from, Where where = Where::current());
void add_(const Tensor& x, const Tensor& other, Where where = Where::current());
void scale_(const Tensor& x, double factor, Where where = Where::current());

}  // namespace cinta
