// Views: the same memory under another layout, with the backward that undoes it.
#include "cinta/ops/shape.h"

#include <algorithm>

#include "cinta/autograd/copy.h"
#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/ops/check.h"
#include "cinta/ops/reduce.h"

namespace cinta {
namespace {

using autograd::apply;
using autograd::Sinks;

/// Strides that show x as `shape` without a copy; false when there are none.
bool view_strides(const Tensor& x, const Shape& shape, Shape& strides) {
  strides = contiguous_strides(shape);
  if (x.contiguous()) return true;
  // Runs of x's dimensions, last first, that lie evenly: each may be cut anywhere into new dimensions.
  struct Run {
    int64_t size, stride;
  };
  std::vector<Run> runs;
  for (int i = x.rank() - 1; i >= 0; --i) {
    const int64_t size = x.shape()[i], stride = x.strides()[i];
    if (size == 1) continue;
    if (!runs.empty() && stride == runs.back().stride * runs.back().size)
      runs.back().size *= size;
    else
      runs.push_back({size, stride});
  }
  size_t at = 0;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    if (at == runs.size() || runs[at].size % shape[i] != 0) return false;
    strides[i] = runs[at].stride;
    runs[at].stride *= shape[i];
    runs[at].size /= shape[i];
    if (runs[at].size == 1) ++at;
  }
  return true;
}

struct Reshape {
  static constexpr const char* name = "reshape";
  static constexpr bool backward_uses_ops = true;
  Shape shape, strides, before;
  Tensor forward(const Tensor& x) {
    before = x.shape();
    return x.with_layout(shape, strides, x.offset());
  }
  void save(const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) { sinks[0].put(reshape(dy, before)); }
};

struct Permute {
  static constexpr const char* name = "permute";
  static constexpr bool backward_uses_ops = true;
  std::vector<int> order;
  Tensor forward(const Tensor& x) {
    Shape shape = x.shape(), strides = x.strides();
    for (int i = 0; i < x.rank(); ++i) {
      shape[i] = x.shape()[order[static_cast<size_t>(i)]];
      strides[i] = x.strides()[order[static_cast<size_t>(i)]];
    }
    return x.with_layout(shape, strides, x.offset());
  }
  void save(const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) {
    std::vector<int> inverse(order.size());
    for (size_t i = 0; i < order.size(); ++i) inverse[static_cast<size_t>(order[i])] = static_cast<int>(i);
    sinks[0].put(permute(dy, inverse));
  }
};

struct Slice {
  static constexpr const char* name = "slice";
  static constexpr bool backward_uses_ops = true;
  int dim;
  int64_t begin, end;
  int64_t size = 0;
  Tensor forward(const Tensor& x) {
    size = x.shape()[dim];
    Shape shape = x.shape();
    shape[dim] = end - begin;
    return x.with_layout(shape, x.strides(), x.offset() + begin * x.strides()[dim]);
  }
  void save(const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) {
    if (autograd::mode().recording) return sinks[0].put(pad(dy, dim, begin, size - end));
    // In place: of a table's gradient only the part is touched, however many parts it is cut into.
    Shape shape = dy.shape();
    shape[dim] = size;
    auto [all, beta] = sinks[0].target(shape, dy.device());
    const auto part = [&](int64_t first, int64_t last) {
      shape[dim] = last - first;
      return all.with_layout(shape, all.strides(), all.offset() + first * all.strides()[dim]);
    };
    if (beta != 0) return kernels::accumulate(dy.device(), part(begin, end), dy);
    kernels::copy(dy.device(), part(begin, end), dy);
    for (const Tensor& rest : {part(0, begin), part(end, size)}) kernels::fill(dy.device(), rest, 0);
  }
};

struct Expand {
  static constexpr const char* name = "expand";
  static constexpr bool backward_uses_ops = true;
  Shape shape, before;
  Tensor forward(const Tensor& x) {
    before = x.shape();
    return x.with_layout(shape, broadcast_strides(x.shape(), x.strides(), shape), x.offset());
  }
  void save(const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) { sinks[0].put(sum_to(dy, before)); }
};

/// True iff no size is negative and their product, sizes of 0 left out, fits 63 bits.
bool sizes_fit(const Shape& shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count)) return false;
  return true;
}

void check_exists(const char* op, const Tensor& x, Where where) {
  require(static_cast<bool>(x), op, where, "a tensor is given");
}

}  // namespace

int64_t leading_rows(const Shape& shape) {
  int64_t rows = 1;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
  return rows;
}

Tensor full(const Shape& shape, double value, Dtype dtype, Device device, Where where) {
  check_value("full", value, dtype, where);
  Tensor out = empty(shape, dtype, device, where);
  kernels::fill(device, out, value);
  return out;
}

Tensor arange(int64_t count, int64_t first, int64_t step, Device device, Where where) {
  require<ShapeError>(count >= 0, "arange", where, "a count is not negative, given ", count);
  int64_t last = 0;
  const bool beyond =
      count > 0 && (__builtin_mul_overflow(count - 1, step, &last) || __builtin_add_overflow(first, last, &last));
  require(!beyond, "arange", where, "numbers fit 63 bits: ", count, " from ", first, " in steps of ", step);
  Tensor out = empty({count}, Dtype::i64, device, where);
  kernels::arange(device, out, first, step);
  return out;
}

Tensor contiguous(const Tensor& x, Where where) {
  check_exists("contiguous", x, where);
  return x.contiguous() ? x : apply(autograd::Copy{"contiguous"}, where, x);
}

Tensor reshape(const Tensor& x, Shape shape, Where where) {
  check_exists("reshape", x, where);
  int unknown = -1;
  int64_t known = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != -1) {
      require<ShapeError>(!__builtin_mul_overflow(known, shape[i], &known), "reshape", where,
                          "as many elements as before: ", x, " to ", shape);
      continue;
    }
    require<ShapeError>(unknown < 0, "reshape", where, "at most one size is -1: ", shape);
    unknown = i;
  }
  if (unknown >= 0 && known > 0 && x.numel() % known == 0) shape[unknown] = x.numel() / known;
  require<ShapeError>(sizes_fit(shape) && shape.numel() == x.numel(), "reshape", where,
                      "as many elements as before: ", x, " to ", shape);
  if (shape == x.shape()) return x;
  Shape strides;
  if (!view_strides(x, shape, strides)) return reshape(contiguous(x, where), shape, where);
  return apply(Reshape{shape, strides, {}}, where, x);
}

Tensor permute(const Tensor& x, const std::vector<int>& order, Where where) {
  check_exists("permute", x, where);
  require<ShapeError>(static_cast<int>(order.size()) == x.rank(), "permute", where, "as many dimensions as ", x,
                      " has, given ", order.size());
  std::vector<int> normal;
  for (int dim : order) {
    normal.push_back(normalize_dim(dim, x.rank(), "permute", where));
    require<ShapeError>(std::count(normal.begin(), normal.end(), normal.back()) == 1, "permute", where,
                        "each dimension is given once, ", dim, " is not");
  }
  return apply(Permute{normal}, where, x);
}

Tensor transpose(const Tensor& x, int first, int second, Where where) {
  check_exists("transpose", x, where);
  std::vector<int> order(static_cast<size_t>(x.rank()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::swap(order[static_cast<size_t>(normalize_dim(first, x.rank(), "transpose", where))],
            order[static_cast<size_t>(normalize_dim(second, x.rank(), "transpose", where))]);
  return permute(x, order, where);
}

Tensor slice(const Tensor& x, int dim, int64_t begin, int64_t end, Where where) {
  check_exists("slice", x, where);
  dim = normalize_dim(dim, x.rank(), "slice", where);
  const int64_t size = x.shape()[dim], from = begin < 0 ? begin + size : begin, to = end < 0 ? end + size : end;
  require<ShapeError>(0 <= from && from <= to && to <= size, "slice", where, "0 <= begin <= end <= ", size,
                      " in dimension ", dim, " of ", x, ", given ", begin, " and ", end);
  if (from == 0 && to == size) return x;
  return apply(Slice{dim, from, to}, where, x);
}

Tensor expand(const Tensor& x, const Shape& shape, Where where) {
  check_exists("expand", x, where);
  if (shape == x.shape()) return x;
  require<ShapeError>(sizes_fit(shape), "expand", where,
                      "sizes are not negative and their product fits 63 bits: ", shape);
  require<ShapeError>(x.rank() <= shape.rank() && broadcast_shape(x.shape(), shape, "expand", where) == shape, "expand",
                      where, "only sizes of 1 are repeated: ", x, " to ", shape);
  return apply(Expand{shape, {}}, where, x);
}

Tensor squeeze(const Tensor& x, int dim, Where where) {
  check_exists("squeeze", x, where);
  dim = normalize_dim(dim, x.rank(), "squeeze", where);
  require<ShapeError>(x.shape()[dim] == 1, "squeeze", where, "dimension ", dim, " has size 1: ", x);
  Shape shape;
  for (int i = 0; i < x.rank(); ++i)
    if (i != dim) shape.push_back(x.shape()[i]);
  return reshape(x, shape, where);
}

Tensor unsqueeze(const Tensor& x, int dim, Where where) {
  check_exists("unsqueeze", x, where);
  dim = normalize_dim(dim, x.rank() + 1, "unsqueeze", where);
  Shape shape;
  for (int i = 0; i <= x.rank(); ++i) {
    if (i == dim) shape.push_back(1);
    if (i < x.rank()) shape.push_back(x.shape()[i]);
  }
  return reshape(x, shape, where);
}

}  // namespace cinta
