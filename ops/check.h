// The checks that many ops begin with. Messages name the operand and show what was given.
#pragma once
#include <cmath>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include "cinta/autograd/autocast.h"
#include "cinta/backends/kernel.h"

namespace cinta {

/// The device of `x` has `row`, or the rows of which a fused one is composed, which say so themselves.
inline void check_implemented(const KernelRow& row, const char* op, const Tensor& x, Where where) {
  require<DeviceError>(row.has(x.device()) || row.is_fused(), op, where, "the kernel ", row.name(),
                       " is not implemented by backend ", x.device(), ", given ", x);
}
/// The same, and it computes in the type of `x`.
inline void check_row(const KernelRow& row, const char* op, const Tensor& x, Where where) {
  check_implemented(row, op, x, where);
  const FloatTypes floats = row.has(x.device()) ? row.floats(x.device()) : all_floats;
  require<DtypeError>(floats.has(x.dtype()), op, where, "on ", x.device(), " the kernel ", row.name(), " computes in ",
                      floats, ", given ", x, "; the device 'reference' computes in all types");
}
/// The device of `x` has every row that an op written with other ops will call, in whatever type: asked before the
/// first of them runs.
inline void check_rows(std::initializer_list<const KernelRow*> rows, const char* op, const Tensor& x, Where where) {
  for (const KernelRow* row : rows) check_implemented(*row, op, x, where);
}
/// `x`, which `row` will read, is floating-point and of a type that its device computes in.
inline void check_floating(const KernelRow& row, const char* op, const char* name, const Tensor& x, Where where) {
  require<DtypeError>(x && is_floating(x.dtype()), op, where, name, " is a floating-point tensor, given ", x);
  check_row(row, op, x, where);
}
/// `other` has the type and device of `x`.
inline void check_like(const char* op, const char* name, const Tensor& other, const Tensor& x, Where where) {
  require<DtypeError>(other && autograd::reconciled(other.dtype(), x.dtype()), op, where, name, " has the type of ", x,
                      ", given ", other);
  require<DeviceError>(other.device() == x.device(), op, where, name, " lies on the device of ", x, ", given ", other);
}
/// `index` holds whole numbers of type `dtype` on the device of `x`.
inline void check_index(const char* op, const char* name, const Tensor& index, Dtype dtype, const Tensor& x,
                        Where where) {
  require<DtypeError>(index && index.dtype() == dtype, op, where, name, " is ", dtype, ", given ", index);
  require<DeviceError>(index.device() == x.device(), op, where, name, " lies on the device of ", x, ", given ", index);
}

/// `value`, its fraction cut off, is one that `dtype` has, where that is a type of whole numbers.
inline void check_value(const char* op, double value, Dtype dtype, Where where) {
  visit(dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      using Limits = std::numeric_limits<T>;
      const double whole = std::trunc(value), beyond = static_cast<double>(Limits::max() / 2 + 1) * 2;
      require(whole >= static_cast<double>(Limits::min()) && whole < beyond, op, where, "a number that ", dtype,
              " can hold, given ", value);
    }
  });
}

}  // namespace cinta
