// Tensor: a cheap handle of shared storage, layout and type, with one seat that belongs to the tape.
// It has no methods that compute: those are functions in ops/.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "cinta/core/device.h"
#include "cinta/core/storage.h"
#include "cinta/core/view.h"

namespace cinta {

namespace autograd {
struct Slot;  // what the tape knows of a tensor; core holds it and never reads it
}

class Tensor {
 public:
  /// No tensor at all; false as a condition.
  Tensor() = default;
  /// A tensor over existing storage; offset and strides in elements.
  Tensor(std::shared_ptr<Storage> storage, Shape shape, Shape strides, int64_t offset, Dtype dtype)
      : storage_(std::move(storage)), shape_(shape), strides_(strides), offset_(offset), dtype_(dtype) {}

  explicit operator bool() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }
  int rank() const { return shape_.rank(); }
  /// Size of a dimension, counted from the end when negative. Throws ShapeError where there is none.
  int64_t size(int dim) const {
    const int place = dim < 0 ? dim + rank() : dim;
    if (place < 0 || place >= rank()) [[unlikely]]
      throw_no_dimension(dim);
    return shape_[place];
  }
  int64_t numel() const { return shape_.numel(); }
  int64_t bytes() const { return numel() * size_of(dtype_); }
  Dtype dtype() const { return dtype_; }
  Device device() const {
    if (!storage_) [[unlikely]]
      throw_no_tensor();
    return storage_->device();
  }
  int64_t offset() const { return offset_; }
  bool contiguous() const { return view().contiguous(); }

  /// What kernels are given. An empty handle gives an absent view.
  View view() const {
    if (!storage_) return {};
    return {static_cast<char*>(storage_->data()) + offset_ * size_of(dtype_), shape_, strides_, dtype_, true};
  }
  operator View() const { return view(); }
  /// The elements, for a contiguous tensor in host-accessible memory; throws DtypeError when T is not its type.
  /// Writing through it is not noticed by the tape: a tensor saved for backward keeps the change.
  template <class T>
  std::span<T> data(Where where = Where::current()) const {
    check_host(dtype_of<T>(), where);
    return {static_cast<T*>(view().data), static_cast<size_t>(numel())};
  }

  const std::shared_ptr<Storage>& storage() const { return storage_; }
  /// The same elements under another layout; shares storage, not the tape's seat.
  Tensor with_layout(Shape shape, Shape strides, int64_t offset) const {
    return {storage_, shape, strides, offset, dtype_};
  }

  std::shared_ptr<autograd::Slot> slot;  ///< the tape's seat

 private:
  [[noreturn]] void throw_no_dimension(int dim) const;
  [[noreturn]] static void throw_no_tensor();
  void check_host(Dtype wanted, Where where) const;
  std::shared_ptr<Storage> storage_;
  Shape shape_, strides_;
  int64_t offset_ = 0;
  Dtype dtype_ = Dtype::f32;
};

/// "f32[32,128]@cpu"
void describe(std::string& out, const Tensor& tensor);

/// Uninitialised, row-major. Throws ShapeError for a negative size or one that overflows.
Tensor empty(const Shape& shape, Dtype dtype = Dtype::f32, Device device = cpu, Where where = Where::current());
/// Uninitialised, row-major, of another tensor's shape, type and device.
Tensor empty_like(const Tensor& like);
/// The same values without a place on the tape.
Tensor detach(const Tensor& tensor);

/// A new tensor on `device` holding `values` (row-major).
template <class T>
Tensor from_values(std::span<const T> values, const Shape& shape, Device device = cpu, Where where = Where::current());
template <class T>
Tensor from_values(const std::vector<T>& values, const Shape& shape, Device device = cpu,
                   Where where = Where::current()) {
  return from_values<T>(std::span<const T>(values), shape, device, where);
}
/// The elements, row-major, converted to T, wherever the tensor lies; waits for the device and throws what it reported.
template <class T>
std::vector<T> to_vector(const Tensor& tensor, Where where = Where::current());
/// The value of a tensor of one element. Throws ShapeError otherwise.
double item(const Tensor& tensor, Where where = Where::current());

/// Copies bytes between equal contiguous tensors of any two devices.
void copy_bytes(const Tensor& destination, const Tensor& source, Where where = Where::current());

}  // namespace cinta
