// Making tensors and moving their bytes to and from the host.
#include "cinta/core/tensor.h"

#include <algorithm>
#include <cstring>

#include "cinta/core/context.h"
#include "cinta/core/small_blocks.h"

namespace cinta {

void describe(std::string& out, const Tensor& tensor) {
  if (!tensor) {
    out += "(no tensor)";
    return;
  }
  describe(out, tensor.dtype());
  describe(out, tensor.shape());
  out += '@';
  describe(out, tensor.device());
}

Tensor empty(const Shape& shape, Dtype dtype, Device device, Where where) {
  int64_t bytes = size_of(dtype);
  bool fits = true;
  for (int64_t size : shape)  // a size of 0 hides no overflow: strides are products too
    fits = fits && size >= 0 && !__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes);
  require<ShapeError>(fits, "empty", where, "sizes are not negative and their product fits 63 bits: ", shape);
  return {make_small<Storage>(shape.numel() * size_of(dtype), device), shape, contiguous_strides(shape), 0, dtype};
}

Tensor empty_like(const Tensor& like) { return empty(like.shape(), like.dtype(), like.device()); }

Tensor detach(const Tensor& tensor) { return tensor.with_layout(tensor.shape(), tensor.strides(), tensor.offset()); }

void Tensor::throw_no_dimension(int dim) const { throw ShapeError(join("[size] ", *this, " has no dimension ", dim)); }
void Tensor::throw_no_tensor() { throw ValueError("[device] there is no tensor: the handle is empty"); }

void Tensor::check_host(Dtype wanted, Where where) const {
  require(*this ? true : false, "data", where, "the tensor exists");
  require<DtypeError>(dtype_ == wanted, "data", where, "the tensor holds ", wanted, ": ", *this);
  require<DeviceError>(runtime_of(device()).host_accessible(), "data", where, "the host can read the memory: ", *this);
  require<ShapeError>(contiguous(), "data", where, "the tensor is contiguous: ", *this);
  context().check_copy("data", where);
}

template <class T>
Tensor from_values(std::span<const T> values, const Shape& shape, Device device, Where where) {
  require<ShapeError>(static_cast<int64_t>(values.size()) == shape.numel(), "from_values", where, "as many values as ",
                      shape, " has elements, given ", values.size());
  context().check_copy("from_values", where);
  Tensor out = empty(shape, dtype_of<T>(), device, where);
  if (device.backend != meta.backend && out.numel())
    runtime_of(device).copy(context().stream(device), out.view().data, values.data(), out.bytes());
  return out;
}

void copy_bytes(const Tensor& destination, const Tensor& source, Where where) {
  require<ShapeError>(destination.shape() == source.shape() && destination.dtype() == source.dtype() &&
                          destination.contiguous() && source.contiguous(),
                      "copy_bytes", where, "equal contiguous tensors: ", destination, " from ", source);
  require<DeviceError>(source.device().backend != meta.backend || destination.device().backend == meta.backend,
                       "copy_bytes", where, "the source has memory: ", destination, " from ", source);
  context().check_copy("copy_bytes", where);
  Runtime &from = runtime_of(source.device()), &to = runtime_of(destination.device());
  if (destination.device().backend == meta.backend || !source.numel()) return;
  const Stream stream_from = context().stream(source.device()), stream_to = context().stream(destination.device());
  void* const target = destination.view().data;
  if (&from == &to || from.host_accessible()) {
    to.copy(stream_to, target, source.view().data, source.bytes());
  } else if (to.host_accessible()) {
    from.copy(stream_from, target, source.view().data, source.bytes());
  } else {  // neither knows the other's memory
    std::vector<char> staged(static_cast<size_t>(source.bytes()));
    from.copy(stream_from, staged.data(), source.view().data, source.bytes());
    from.synchronize(stream_from);
    to.copy(stream_to, target, staged.data(), source.bytes());
    to.synchronize(stream_to);
  }
  destination.storage()->mark_written("copy_bytes");
}

namespace {

/// The element at row-major position `index`, as its byte offset in the storage of `view`.
int64_t offset_of(const View& view, int64_t index) {
  int64_t offset = 0;
  for (int dim = view.rank() - 1; dim >= 0; --dim) {
    offset += index % view.shape[dim] * view.strides[dim];
    index /= view.shape[dim];
  }
  return offset;
}

}  // namespace

template <class T>
std::vector<T> to_vector(const Tensor& tensor, Where where) {
  require(static_cast<bool>(tensor), "to_vector", where, "the tensor exists");
  require<DeviceError>(tensor.device().backend != meta.backend, "to_vector", where, "the tensor has memory: ", tensor);
  context().check_copy("to_vector", where);
  context().check_status(tensor.device());
  // The span of memory that the layout touches is brought to the host once, then read by position.
  int64_t last = 0;
  for (int dim = 0; dim < tensor.rank(); ++dim) last += (tensor.size(dim) - 1) * tensor.strides()[dim];
  std::vector<T> out(static_cast<size_t>(tensor.numel()));
  if (out.empty()) return out;
  const int64_t width = size_of(tensor.dtype());
  std::vector<char> bytes(static_cast<size_t>((last + 1) * width));
  Runtime& runtime = runtime_of(tensor.device());
  const Stream stream = context().stream(tensor.device());
  runtime.copy(stream, bytes.data(), tensor.view().data, static_cast<int64_t>(bytes.size()));
  runtime.synchronize(stream);
  visit(tensor.dtype(), [&]<class S>() {
    for (size_t i = 0; i < out.size(); ++i) {
      S value;
      std::memcpy(&value, bytes.data() + offset_of(tensor.view(), static_cast<int64_t>(i)) * width, sizeof value);
      out[i] = static_cast<T>(value);
    }
  });
  return out;
}

double item(const Tensor& tensor, Where where) {
  require<ShapeError>(tensor.numel() == 1, "item", where, "a tensor of one element, given ", tensor);
  return to_vector<double>(tensor, where)[0];
}

template Tensor from_values(std::span<const double>, const Shape&, Device, Where);
template Tensor from_values(std::span<const float>, const Shape&, Device, Where);
template Tensor from_values(std::span<const f16>, const Shape&, Device, Where);
template Tensor from_values(std::span<const bf16>, const Shape&, Device, Where);
template Tensor from_values(std::span<const int8_t>, const Shape&, Device, Where);
template Tensor from_values(std::span<const uint8_t>, const Shape&, Device, Where);
template Tensor from_values(std::span<const int32_t>, const Shape&, Device, Where);
template Tensor from_values(std::span<const int64_t>, const Shape&, Device, Where);
template std::vector<double> to_vector(const Tensor&, Where);
template std::vector<float> to_vector(const Tensor&, Where);
template std::vector<int32_t> to_vector(const Tensor&, Where);
template std::vector<int64_t> to_vector(const Tensor&, Where);
template std::vector<uint8_t> to_vector(const Tensor&, Where);

}  // namespace cinta
