// Reductions: two rows (sum, max) and what is composed of them.
#include "cinta/ops/reduce.h"

#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/reduce.h"
#include "cinta/ops/check.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/shape.h"

namespace cinta {
namespace {

using autograd::apply;
using autograd::Saved;
using autograd::Sinks;

/// Which dimensions are reduced, as a shape of 1s (reduced) and the old sizes.
Shape reduced_shape(const KernelRow& row, const Tensor& x, const std::vector<int>& dims, const char* op, Where where) {
  check_floating(row, op, "x", x, where);
  Shape shape = x.shape();
  if (dims.empty()) return Shape::filled(x.rank(), 1);
  std::array<bool, max_rank> seen{};
  for (int dim : dims) {
    const int normal = normalize_dim(dim, x.rank(), op, where);
    require<ShapeError>(!seen[static_cast<size_t>(normal)], op, where, "each dimension is given once, ", dim,
                        " is not: ", x);
    seen[static_cast<size_t>(normal)] = true;
    shape[normal] = 1;
  }
  return shape;
}

/// The shape without the reduced dimensions.
Shape without(const std::vector<int>& dims, int rank) {
  return Shape::filled(dims.empty() ? 0 : rank - static_cast<int>(dims.size()), 0);
}

Tensor drop_dims(const Tensor& kept, const std::vector<int>& dims, bool keep_dims, Where where) {
  if (keep_dims) return kept;
  Shape shape = without(dims, kept.rank());
  std::array<bool, max_rank> gone{};
  for (int dim : dims) gone[static_cast<size_t>(dim < 0 ? dim + kept.rank() : dim)] = true;
  for (int i = 0, next = 0; next < shape.rank(); ++i)
    if (!gone[static_cast<size_t>(i)]) shape[next++] = kept.shape()[i];
  return reshape(kept, shape, where);
}

/// How many elements of x each element of the result is made from.
int64_t reduced_count(const Tensor& x, const Shape& shape) {
  int64_t count = 1;
  for (int i = 0; i < x.rank(); ++i)
    if (shape[i] != x.shape()[i]) count *= x.shape()[i];
  return count;
}

struct Sum {
  static constexpr const char* name = "sum";
  static constexpr bool backward_uses_ops = true;
  Shape out_shape, in_shape;
  Tensor forward(const Tensor& x) {
    in_shape = x.shape();
    Tensor y = empty(out_shape, x.dtype(), x.device());
    kernels::sum(x.device(), y, x, 0.0f);
    return y;
  }
  void save(const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) { sinks[0].put(expand(dy, in_shape)); }
};

struct Max {
  static constexpr const char* name = "max";
  static constexpr bool backward_uses_ops = true;
  Shape out_shape;
  Saved x, y;
  Tensor forward(const Tensor& in) {
    Tensor out = empty(out_shape, in.dtype(), in.device());
    kernels::max(in.device(), out, in);
    return out;
  }
  void save(const Tensor& out, const Tensor& in) {
    x.keep(in);
    y.keep(out);
  }
  void backward(const Tensor& dy, Sinks sinks) {
    const Tensor in = detach(x.get());
    const Tensor hits = cast(equal(in, expand(detach(y.get()), in.shape())), in.dtype());
    sinks[0].put(hits * (dy / sum_to(hits, dy.shape())));
  }
};

}  // namespace

Tensor sum(const Tensor& x, std::vector<int> dims, bool keep_dims, Where where) {
  const Shape shape = reduced_shape(kernels::sum, x, dims, "sum", where);
  return drop_dims(apply(Sum{shape, {}}, where, x), dims, keep_dims, where);
}

Tensor mean(const Tensor& x, std::vector<int> dims, bool keep_dims, Where where) {
  const Shape shape = reduced_shape(kernels::sum, x, dims, "mean", where);
  check_rows({&kernels::affine.forward}, "mean", x, where);
  const int64_t count = reduced_count(x, shape);
  require<ShapeError>(count > 0, "mean", where, "at least one element a result: ", x);
  // The sum of a narrow type's elements may lie outside it where their mean does not.
  if (size_of(x.dtype()) < size_of(Dtype::f32))
    return cast(mean(cast(x, Dtype::f32, where), std::move(dims), keep_dims, where), x.dtype(), where);
  return affine(sum(x, std::move(dims), keep_dims, where), 1 / static_cast<double>(count), 0, where);
}

Tensor var(const Tensor& x, std::vector<int> dims, int correction, bool keep_dims, Where where) {
  const Shape shape = reduced_shape(kernels::sum, x, dims, "var", where);
  check_rows({&kernels::affine.forward, &kernels::subtract, &kernels::multiply}, "var", x, where);
  const int64_t count = reduced_count(x, shape);
  require<ShapeError>(count > correction, "var", where, "more than ", correction, " elements a result: ", x, " gives ",
                      count);
  const Tensor values = autograd::widened("var", x);
  // Squares of a narrow type's numbers, and their sum, may lie outside it where the variance does not.
  if (size_of(values.dtype()) < size_of(Dtype::f32))
    return cast(var(cast(values, Dtype::f32, where), std::move(dims), correction, keep_dims, where), values.dtype(),
                where);
  const Tensor distance = subtract(values, mean(values, dims, true, where), where);
  const Tensor total = sum(multiply(distance, distance, where), std::move(dims), keep_dims, where);
  return affine(total, 1.0 / static_cast<double>(count - correction), 0, where);
}

Tensor max(const Tensor& x, std::vector<int> dims, bool keep_dims, Where where) {
  const Shape shape = reduced_shape(kernels::max, x, dims, "max", where);
  require<ShapeError>(x.numel() > 0 || shape.numel() == 0, "max", where, "at least one element a result: ", x);
  return drop_dims(apply(Max{shape, {}, {}}, where, x), dims, keep_dims, where);
}

Tensor argmax(const Tensor& x, std::vector<int> dims, bool keep_dims, Where where) {
  const Shape shape = reduced_shape(kernels::argmax, x, dims, "argmax", where);
  require<ShapeError>(x.numel() > 0 || shape.numel() == 0, "argmax", where, "at least one element a result: ", x);
  // The row looks along one dimension: the reduced ones are joined into the last, without a copy where they lie so.
  std::vector<int> order;
  Shape rows;
  for (int dim = 0; dim < x.rank(); ++dim)
    if (shape[dim] != 1) order.push_back(dim), rows.push_back(shape[dim]);
  const int last = rows.rank();
  for (int dim = 0; dim < x.rank(); ++dim)
    if (shape[dim] == 1) order.push_back(dim);
  rows.push_back(reduced_count(x, shape));
  const Tensor values = reshape(permute(detach(x), order, where), rows, where);
  rows[last] = 1;
  Tensor out = empty(shape, Dtype::i64, x.device());
  kernels::argmax(x.device(), out.with_layout(rows, contiguous_strides(rows), 0), values, last);
  return drop_dims(out, dims, keep_dims, where);
}

Tensor logsumexp(const Tensor& x, std::vector<int> dims, bool keep_dims, Where where) {
  const Shape kept = reduced_shape(kernels::exp.forward, x, dims, "logsumexp", where);
  check_rows(
      {&kernels::max, &kernels::clamp.forward, &kernels::subtract, &kernels::sum, &kernels::log.forward, &kernels::add},
      "logsumexp", x, where);
  require<ShapeError>(x.numel() > 0 || kept.numel() == 0, "logsumexp", where, "at least one element a result: ", x);
  // The largest element is only a shift: the result does not depend on it, so the tape need not follow it. A row of
  // -inf alone would give inf - inf: the clamp to the type's range keeps its shift finite.
  const double largest = x.dtype() == Dtype::f16 ? 65504.0 : x.dtype() == Dtype::f64 ? 1.79e308 : 3.38e38;
  const Tensor shift = clamp(max(detach(x), dims, true, where), -largest, largest, where);
  const Tensor total = log(sum(exp(subtract(x, shift, where), where), dims, true, where), where);
  return drop_dims(add(total, shift, where), dims, keep_dims, where);
}

Tensor sum_to(const Tensor& x, const Shape& shape, Where where) {
  if (x.shape() == shape) return x;
  bool broadcasts = shape.rank() <= x.rank();
  for (int i = 1; broadcasts && i <= shape.rank(); ++i)
    broadcasts = shape[shape.rank() - i] == 1 || shape[shape.rank() - i] == x.size(-i);
  require<ShapeError>(broadcasts, "sum_to", where, shape, " broadcasts to the shape of ", x);
  std::vector<int> dims;
  const int lead = x.rank() - shape.rank();
  for (int i = 0; i < x.rank(); ++i)
    if (i < lead || (shape[i - lead] == 1 && x.shape()[i] != 1)) dims.push_back(i);
  return dims.empty() ? reshape(x, shape, where) : reshape(sum(x, dims, true, where), shape, where);
}

}  // namespace cinta
