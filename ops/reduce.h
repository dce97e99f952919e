// Reductions over any dimensions; an empty list of dimensions means all of them.
#pragma once
#include "cinta/core/tensor.h"

namespace cinta {

Tensor sum(const Tensor& x, std::vector<int> dims = {}, bool keep_dims = false, Where where = Where::current());
Tensor mean(const Tensor& x, std::vector<int> dims = {}, bool keep_dims = false, Where where = Where::current());
/// Mean squared distance from the mean, divided by n - correction.
Tensor var(const Tensor& x, std::vector<int> dims = {}, int correction = 1, bool keep_dims = false,
           Where where = Where::current());
/// Largest element; its gradient is shared equally among equals. Throws ShapeError over no elements.
Tensor max(const Tensor& x, std::vector<int> dims = {}, bool keep_dims = false, Where where = Where::current());
/// Position (i64) of the first largest element, NaN being the largest, among the reduced dimensions laid out row-major
/// in the order that x has them. Not differentiated. Throws ShapeError over no elements.
Tensor argmax(const Tensor& x, std::vector<int> dims = {}, bool keep_dims = false, Where where = Where::current());
/// log(sum(exp(x))), without overflow.
Tensor logsumexp(const Tensor& x, std::vector<int> dims = {}, bool keep_dims = false, Where where = Where::current());

/// x summed over the dimensions along which `shape` was broadcast to x's shape: the gradient of broadcasting.
Tensor sum_to(const Tensor& x, const Shape& shape, Where where = Where::current());

}  // namespace cinta
