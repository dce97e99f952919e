// Joining, cutting and padding along a dimension.
#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/ops/check.h"
#include "cinta/ops/shape.h"

namespace cinta {
namespace {

using autograd::apply;
using autograd::Sinks;

/// The elements [begin, begin + size) of dimension `dim`, outside the tape.
Tensor part_of(const Tensor& x, int dim, int64_t begin, int64_t size) {
  Shape shape = x.shape();
  shape[dim] = size;
  return x.with_layout(shape, x.strides(), x.offset() + begin * x.strides()[dim]);
}

struct Concat {
  static constexpr const char* name = "concat";
  static constexpr bool backward_uses_ops = true;
  int dim;
  std::vector<int64_t> sizes;
  Tensor forward(const std::vector<Tensor>& parts) {
    Shape shape = parts[0].shape();
    shape[dim] = 0;
    for (const Tensor& part : parts) shape[dim] += part.shape()[dim];
    Tensor out = empty(shape, parts[0].dtype(), parts[0].device());
    int64_t begin = 0;
    for (const Tensor& part : parts) {
      sizes.push_back(part.shape()[dim]);
      if (part.numel()) kernels::copy(out.device(), part_of(out, dim, begin, sizes.back()), part);
      begin += sizes.back();
    }
    return out;
  }
  void save(const Tensor&, const std::vector<Tensor>&) {}
  void backward(const Tensor& dy, Sinks sinks) {
    int64_t begin = 0;
    for (size_t i = 0; i < sizes.size(); begin += sizes[i++])
      if (sinks[i].wanted()) sinks[i].put(slice(dy, dim, begin, begin + sizes[i]));
  }
};

struct Pad {
  static constexpr const char* name = "pad";
  static constexpr bool backward_uses_ops = true;
  int dim;
  int64_t before, after;
  double value;
  int64_t size = 0;
  Tensor forward(const Tensor& x) {
    size = x.shape()[dim];
    Shape shape = x.shape();
    shape[dim] = before + size + after;
    Tensor out = empty(shape, x.dtype(), x.device());
    if (before) kernels::fill(x.device(), part_of(out, dim, 0, before), value);
    if (after) kernels::fill(x.device(), part_of(out, dim, before + size, after), value);
    if (x.numel()) kernels::copy(x.device(), part_of(out, dim, before, size), x);
    return out;
  }
  void save(const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) { sinks[0].put(slice(dy, dim, before, before + size)); }
};

}  // namespace

Tensor concat(const std::vector<Tensor>& parts, int dim, Where where) {
  require<ShapeError>(!parts.empty() && parts[0] && parts[0].rank() > 0, "concat", where,
                      "at least one tensor with dimensions");
  dim = normalize_dim(dim, parts[0].rank(), "concat", where);
  for (const Tensor& part : parts) {
    require<DtypeError>(part && autograd::reconciled(part.dtype(), parts[0].dtype()), "concat", where,
                        "one type: ", parts[0], " with ", part);
    require<DeviceError>(part.device() == parts[0].device(), "concat", where, "one device: ", parts[0], " with ", part);
    bool fits = part.rank() == parts[0].rank();
    for (int i = 0; fits && i < part.rank(); ++i) fits = i == dim || part.shape()[i] == parts[0].shape()[i];
    require<ShapeError>(fits, "concat", where, "equal sizes but in dimension ", dim, ": ", parts[0], " with ", part);
  }
  return apply(Concat{dim, {}}, where, parts);
}

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int dim, Where where) {
  require(static_cast<bool>(x), "split", where, "a tensor is given");
  dim = normalize_dim(dim, x.rank(), "split", where);
  int64_t total = 0;
  for (int64_t size : sizes) {
    require<ShapeError>(size >= 0, "split", where, "sizes are not negative, given ", size);
    total += size;
  }
  require<ShapeError>(total == x.shape()[dim], "split", where, "sizes add up to ", x.shape()[dim], ", given ", total,
                      ": ", x);
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    parts.push_back(slice(x, dim, begin, begin + size, where));
    begin += size;
  }
  return parts;
}

Tensor pad(const Tensor& x, int dim, int64_t before, int64_t after, double value, Where where) {
  require(static_cast<bool>(x), "pad", where, "a tensor is given");
  dim = normalize_dim(dim, x.rank(), "pad", where);
  require<ShapeError>(before >= 0 && after >= 0, "pad", where, "sizes are not negative, given ", before, " and ",
                      after);
  int64_t size = x.shape()[dim];
  const bool fits = !__builtin_add_overflow(size, before, &size) && !__builtin_add_overflow(size, after, &size);
  require<ShapeError>(fits, "pad", where, "the padded size fits 63 bits, given ", before, " and ", after);
  check_value("pad", value, x.dtype(), where);
  return apply(Pad{dim, before, after, value}, where, x);
}

}  // namespace cinta
