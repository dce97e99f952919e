// What the kernels of whole rows are given: tensors of any shape as contiguous [rows, columns]. Outside the tape.
#pragma once
#include "cinta/ops/shape.h"

namespace cinta {

/// x, contiguous; none where there is none.
inline Tensor dense(const Tensor& x) { return !x || x.contiguous() ? x : contiguous(x); }

/// x as contiguous [product of the leading sizes, last size]; copies only where the strides make it necessary.
inline Tensor as_rows(const Tensor& x) {
  const Tensor flat = dense(x);
  const int64_t columns = x.rank() ? x.size(-1) : 1;
  return flat.with_layout({leading_rows(x.shape()), columns}, {columns, 1}, flat.offset());
}

/// The same of a tensor that may be absent, for a row.
inline View rows_view(const Tensor& x) { return x ? as_rows(x).view() : View{}; }

/// x as contiguous [elements].
inline Tensor as_flat(const Tensor& x) {
  const Tensor flat = dense(x);
  return flat.with_layout({x.numel()}, {1}, flat.offset());
}

/// The type that statistics beside a tensor of type `dtype` are kept in.
inline Dtype statistics_type(Dtype dtype) { return dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32; }

}  // namespace cinta
