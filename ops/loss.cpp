// Cross entropy is one fused row; the other losses are written with ops.
#include "cinta/ops/loss.h"

#include <cmath>

#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/embedding.h"
#include "cinta/backends/kernels/reduce.h"
#include "cinta/backends/kernels/softmax.h"
#include "cinta/core/context.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/check.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/rows.h"
#include "cinta/ops/shape.h"
#include "cinta/ops/softmax.h"

namespace cinta {
namespace {

using autograd::Saved;

Tensor constant(const Tensor& like, double value) { return full({}, value, like.dtype(), like.device()); }

/// An i64 on the device of `like`. It is filled with a double, which not every integer of 64 bits is: others are
/// counted.
Tensor integer(const Tensor& like, int64_t value) {
  const auto near = static_cast<double>(value);
  const bool exact = near < 0x1p63 && static_cast<int64_t>(near) == value;
  return exact ? full({}, near, Dtype::i64, like.device()) : reshape(arange(1, value, 1, like.device()), {});
}

struct CrossEntropy {
  static constexpr const char* name = "cross_entropy";
  kernels::CrossEntropy options;
  Saved logits, labels, lse;
  Tensor row_lse;  // between forward and save

  std::array<autograd::FusedRow, 1> fused_rows() const {
    return {{{&kernels::cross_entropy, &kernels::cross_entropy_backward}}};
  }
  Tensor forward(const Tensor& x, const Tensor& y) {
    const Dtype dtype = statistics_type(x.dtype());
    Tensor loss = empty(y.shape(), dtype, x.device());
    row_lse = empty({y.numel(), 2}, dtype, x.device());
    kernels::cross_entropy(x.device(), as_flat(loss), row_lse, as_rows(x), as_flat(y), options,
                           context().status(x.device()));
    return loss;
  }
  void save(const Tensor&, const Tensor& x, const Tensor& y) {
    logits.keep(x);
    labels.keep(y);
    lse.keep(row_lse);
    row_lse = {};
  }
  void backward(const Tensor& dloss, autograd::Sinks sinks) {
    const Tensor x = logits.take();
    Tensor dx = autograd::in_place_of(x);
    kernels::cross_entropy_backward(x.device(), as_rows(dx), as_flat(dloss), as_rows(x), lse.get(),
                                    as_flat(labels.get()), options);
    sinks[0].put(std::move(dx));
  }
  std::vector<Tensor> inputs() { return {logits.get(), labels.get()}; }
  Tensor composed(std::span<const Tensor> in) {
    const Tensor log_p = log_softmax(cast(in[0], statistics_type(in[0].dtype()))), &y = in[1];
    const int64_t count = log_p.size(-1);
    const double smoothing = options.label_smoothing;
    const Tensor zero = constant(log_p, 0);
    if (!lse) report_bad(y, count);  // as forward() would have done
    const Tensor is_label = equal(unsqueeze(y, -1), arange(count, 0, 1, y.device()));
    // A label that is ignored or outside the classes is found in none of them, unless it is ignored and a class.
    const Tensor valid = max(cast(is_label, log_p.dtype()), {-1});
    const Tensor real = cast(not_equal(y, integer(y, options.ignore_index)), log_p.dtype());
    Tensor loss = sum(cinta::where(is_label, log_p, zero), {-1}) * (smoothing - 1);
    if (smoothing != 0) loss = loss - sum(log_p, {-1}) * (smoothing / static_cast<double>(count));
    return cinta::where(greater(valid * real, zero), loss, zero);
  }
  /// Looks each label that is not ignored up in a table of `count` rows.
  void report_bad(const Tensor& y, int64_t count) const {
    const Device device = y.device();
    const Tensor ignored = equal(y, integer(y, options.ignore_index)), table = full({count, 1}, 0, Dtype::f32, device),
                 rows = empty({y.numel(), 1}, Dtype::f32, device);
    kernels::gather_rows(device, rows, table, as_flat(cinta::where(ignored, constant(y, 0), y)),
                         context().status(device));
  }
};

/// The device of `x` has the rows of `reduce`.
void check_reduction(Reduction reduction, const char* op, const Tensor& x, Where where) {
  if (reduction != Reduction::none) check_rows({&kernels::sum}, op, x, where);
  if (reduction == Reduction::mean) check_rows({&kernels::affine.forward}, op, x, where);
}

Tensor reduce(const Tensor& losses, Reduction reduction, Where where) {
  if (reduction == Reduction::none) return losses;
  return reduction == Reduction::sum ? sum(losses, {}, false, where) : mean(losses, {}, false, where);
}

void check_labels(const KernelRow& row, const char* op, const Tensor& logits, const Tensor& labels, Where where) {
  check_floating(row, op, "logits", logits, where);
  check_index(op, "labels", labels, Dtype::i64, logits, where);
  require<ShapeError>(logits.rank() >= 1 && logits.size(-1) > 0, op, where, "logits[..,V] with V > 0, given ", logits);
  require<ShapeError>(
      labels.shape() == Shape(std::span(logits.shape().begin(), static_cast<size_t>(logits.rank() - 1))), op, where,
      "labels[..] for logits[..,V]: logits ", logits, ", labels ", labels);
}

void check_pair(std::initializer_list<const KernelRow*> rows, const char* op, const char* name, const Tensor& x,
                const char* other_name, const Tensor& other, Reduction reduction, Where where) {
  check_floating(**rows.begin(), op, name, x, where);
  check_rows(rows, op, x, where);
  check_reduction(reduction, op, x, where);
  check_like(op, other_name, other, x, where);
  require<ShapeError>(x.shape() == other.shape(), op, where, name, " and ", other_name, " have one shape: ", x, " and ",
                      other);
  require<ShapeError>(reduction != Reduction::mean || x.numel() > 0, op, where,
                      "the mean is over at least one element: ", x);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options, Where where) {
  constexpr const char* op = "cross_entropy";
  check_labels(kernels::cross_entropy, op, logits, labels, where);
  if (options.reduction != Reduction::none) check_rows({&kernels::sum}, op, logits, where);
  if (options.reduction == Reduction::mean)
    check_rows({&kernels::not_equal, &kernels::clamp.forward, &kernels::divide}, op, logits, where);
  require(options.label_smoothing >= 0 && options.label_smoothing <= 1, op, where,
          "label_smoothing lies in [0, 1], given ", options.label_smoothing);
  const kernels::CrossEntropy row{options.ignore_index, static_cast<float>(options.label_smoothing)};
  const Tensor losses = autograd::apply(CrossEntropy{row, {}, {}, {}, {}}, where, logits, labels);
  context().check_status_of(op, logits.device(), where);
  if (options.reduction != Reduction::mean) return reduce(losses, options.reduction, where);
  const Tensor count = count_items(labels, options.ignore_index, losses.dtype(), where);
  return divide(sum(losses, {}, false, where), clamp(count, 1, INFINITY), where);
}

Tensor count_items(const Tensor& labels, int64_t ignore_index, Dtype dtype, Where where) {
  require<DtypeError>(labels && labels.dtype() == Dtype::i64, "count_items", where, "labels is i64, given ", labels);
  require<DtypeError>(is_floating(dtype), "count_items", where, "a count is floating-point, given ", dtype);
  check_rows({&kernels::not_equal, &kernels::sum}, "count_items", labels, where);
  return sum(cast(not_equal(labels, integer(labels, ignore_index), where), dtype, where), {}, false, where);
}

Tensor count_correct(const Tensor& logits, const Tensor& labels, Where where) {
  check_labels(kernels::argmax, "count_correct", logits, labels, where);
  check_rows({&kernels::equal, &kernels::sum}, "count_correct", logits, where);
  return sum(cast(cinta::equal(argmax(logits, {-1}, false, where), labels, where), Dtype::f32, where), {}, false,
             where);
}

Tensor mse(const Tensor& prediction, const Tensor& target, Reduction reduction, Where where) {
  check_pair({&kernels::subtract, &kernels::multiply}, "mse", "prediction", prediction, "target", target, reduction,
             where);
  const Tensor distance = subtract(autograd::widened("mse", prediction), autograd::widened("mse", target), where);
  return reduce(multiply(distance, distance, where), reduction, where);
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction, Where where) {
  constexpr const char* op = "bce_with_logits";
  check_pair({&kernels::softplus.forward, &kernels::affine.forward, &kernels::greater, &kernels::where,
              &kernels::subtract, &kernels::multiply, &kernels::add},
             op, "logits", logits, "target", target, reduction, where);
  // t softplus(-x) + (1 - t) softplus(x), where -log sigmoid(x) = softplus(-x), is softplus(-|x|) + x ((x > 0) - t).
  // The shorter softplus(x) - x t loses all digits of a small loss at t = 1, and the longer one those of its slope in
  // t, -x.
  const Tensor x = autograd::widened(op, logits), t = autograd::widened(op, target),
               positive = greater(detach(x), 0, where);
  const Tensor tail = softplus(cinta::where(positive, affine(x, -1, 0, where), x, where), where);
  const Tensor wrong = subtract(cinta::where(positive, constant(x, 1), constant(x, 0), where), t, where);
  return reduce(add(tail, multiply(x, wrong, where), where), reduction, where);
}

Tensor kl_div(const Tensor& log_p, const Tensor& log_q, Reduction reduction, Where where) {
  check_pair({&kernels::exp.forward, &kernels::greater, &kernels::where, &kernels::subtract, &kernels::multiply,
              &kernels::sum},
             "kl_div", "log_p", log_p, "log_q", log_q, reduction, where);
  require<ShapeError>(log_p.rank() >= 1, "kl_div", where, "at least one dimension, given ", log_p);
  const Tensor p = exp(log_p, where), zero = constant(p, 0);
  // Where p is 0 its logarithm is -inf: nothing of that class may reach the sum, nor its gradient.
  const Tensor possible = greater(detach(p), zero, where);
  const Tensor distance =
      subtract(cinta::where(possible, log_p, zero, where), cinta::where(possible, log_q, zero, where), where);
  return reduce(sum(multiply(p, distance, where), {-1}, false, where), reduction, where);
}

}  // namespace cinta
