// Another storage type, another device; and writing in place outside the tape.
#include "cinta/autograd/copy.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/ops/check.h"
#include "cinta/ops/shape.h"

namespace cinta {
namespace {

using autograd::apply;
using autograd::Sinks;

struct To {
  static constexpr const char* name = "to";
  static constexpr bool backward_uses_ops = true;
  Device device;
  Device before = cpu;
  Tensor forward(const Tensor& x) {
    before = x.device();
    const Tensor rows = contiguous(x);
    Tensor y = empty(x.shape(), x.dtype(), device);
    if (device.backend != meta.backend) copy_bytes(y, rows);
    return y;
  }
  void save(const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) { sinks[0].put(to(dy, before)); }
};

/// In-place writing is not recorded: it is for buffers and for leaves under NoGrad.
void check_writable(const char* op, const Tensor& x, Where where) {
  require(static_cast<bool>(x), op, where, "a tensor is given");
  require(!x.slot || !autograd::mode().recording, op, where,
          "a tensor the tape follows is written under NoGrad only: ", x);
  for (int dim = 0; dim < x.rank() && x.numel() > 0; ++dim)
    require<ShapeError>(x.size(dim) <= 1 || x.strides()[dim] != 0, op, where,
                        "every element has a place of its own: ", x, " repeats dimension ", dim);
}

/// `from` to be read while x is written: a copy where both share memory and lie differently.
Tensor apart(const Tensor& from, const Tensor& x) {
  if (from.storage() != x.storage() || (from.offset() == x.offset() && from.strides() == x.strides())) return from;
  Tensor copy = empty(from.shape(), from.dtype(), from.device());
  kernels::copy(from.device(), copy, from);
  return copy;
}

void check_same(const char* op, const Tensor& x, const Tensor& other, Where where) {
  require<ShapeError>(other && x.shape() == other.shape(), op, where, "one shape: ", x, " with ", other);
  require<DeviceError>(x.device() == other.device(), op, where, "one device: ", x, " with ", other);
}

}  // namespace

Tensor cast(const Tensor& x, Dtype dtype, Where where) {
  require(static_cast<bool>(x), "cast", where, "a tensor is given");
  return x.dtype() == dtype ? x : apply(autograd::Copy{"cast", dtype}, where, x);
}

Tensor to(const Tensor& x, Device device, Where where) {
  require(static_cast<bool>(x), "to", where, "a tensor is given");
  require<DeviceError>(x.device().backend != meta.backend || device.backend == meta.backend, "to", where,
                       "a tensor with memory, to be moved to ", device, ": ", x);
  return x.device() == device ? x : apply(To{device}, where, x);
}

void fill_(const Tensor& x, double value, Where where) {
  check_writable("fill_", x, where);
  check_value("fill_", value, x.dtype(), where);
  kernels::fill(x.device(), x, value);
  x.storage()->mark_written("fill_");
}

void copy_(const Tensor& x, const Tensor& from, Where where) {
  check_writable("copy_", x, where);
  check_same("copy_", x, from, where);
  autograd::note_read("copy_", from);
  kernels::copy(x.device(), x, apart(from, x));
  x.storage()->mark_written("copy_");
}

void add_(const Tensor& x, const Tensor& other, Where where) {
  check_writable("add_", x, where);
  check_same("add_", x, other, where);
  require<DtypeError>(is_floating(x.dtype()) && is_floating(other.dtype()), "add_", where,
                      "floating-point tensors: ", x, " with ", other);
  check_row(kernels::accumulate, "add_", x, where);
  autograd::note_read("add_", other);
  kernels::accumulate(x.device(), x, apart(other, x));
  x.storage()->mark_written("add_");
}

void scale_(const Tensor& x, double factor, Where where) {
  check_writable("scale_", x, where);
  require<DtypeError>(is_floating(x.dtype()), "scale_", where, "a floating-point tensor: ", x);
  check_row(kernels::affine.forward, "scale_", x, where);
  kernels::affine.forward(x.device(), x, x, {factor, -0.0});  // +0 would make +0 of -0
  x.storage()->mark_written("scale_");
}

}  // namespace cinta
