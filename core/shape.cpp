// Shape arithmetic: strides, dimension numbers, broadcasting.
#include "cinta/core/shape.h"

#include <algorithm>

namespace cinta {

void describe(std::string& out, const Shape& shape) {
  out += '[';
  for (int i = 0; i < shape.rank(); ++i) {
    if (i) out += ',';
    out += std::to_string(shape[i]);
  }
  out += ']';
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides = shape;
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

int normalize_dim(int dim, int rank, std::string_view op, Where where) {
  const int normal = dim < 0 ? dim + rank : dim;
  require<ShapeError>(normal >= 0 && normal < rank, op, where, "dimension ", dim, " is outside a tensor of rank ",
                      rank);
  return normal;
}

Shape broadcast_shape(const Shape& a, const Shape& b, std::string_view op, Where where) {
  const int rank = std::max(a.rank(), b.rank());
  Shape out = Shape::filled(rank, 1);
  for (int i = 1; i <= rank; ++i) {
    const int64_t m = i <= a.rank() ? a[a.rank() - i] : 1, n = i <= b.rank() ? b[b.rank() - i] : 1;
    require<ShapeError>(m == n || m == 1 || n == 1, op, where, "shapes do not broadcast: ", a, " with ", b, " (", m,
                        " != ", n, " at dimension ", -i, ")");
    out[rank - i] = m == 1 ? n : m;
  }
  return out;
}

Shape broadcast_strides(const Shape& shape, const Shape& strides, const Shape& wanted) {
  Shape out = Shape::filled(wanted.rank(), 0);
  const int lead = wanted.rank() - shape.rank();
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] != 1) out[lead + i] = strides[i];
  return out;
}

}  // namespace cinta
