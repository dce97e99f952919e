// Softmax and the losses on it, row by row.
#include "cinta/backends/kernels/softmax.h"

#include <algorithm>

#include "cinta/backends/reference/element.h"
#include "cinta/backends/reference/status.h"

namespace cinta::oracle {
namespace {

/// log(sum(exp(row))) as `largest` + `rest`, which would lose digits as one number where the row's are large.
struct LogSumExp {
  double largest = -INFINITY, rest = 0;
  explicit LogSumExp(const std::vector<double>& row) {
    for (double x : row)
      if (x > largest) largest = x;
    double sum = 0;
    for (double x : row) sum += std::exp(x - largest);
    rest = std::log(sum);
  }
  /// The logarithm of a share.
  double log_share(double x) const { return (x - largest) - rest; }
};

/// Calls f(row of y, row of a, row of b) for every row of the last dimension; b may be absent.
template <class F>
void each_row(const View& y, const View& a, const View& b, F f) {
  for (const Index& i : Indices(leading(y.shape, y.rank() - 1))) f(part(y, i), part(a, i), b ? part(b, i) : View{});
}

void softmax_rows(View y, View x) {
  each_row(y, x, {}, [](const View& y, const View& x, const View&) {
    const std::vector<double> row = values(x);
    const LogSumExp lse(row);
    for (int64_t j = 0; j < y.size(0); ++j) at(y, j) = std::exp(lse.log_share(row[j]));
  });
}

void log_softmax_rows(View y, View x) {
  each_row(y, x, {}, [](const View& y, const View& x, const View&) {
    const std::vector<double> row = values(x);
    const LogSumExp lse(row);
    for (int64_t j = 0; j < y.size(0); ++j) at(y, j) = lse.log_share(row[j]);
  });
}

void softmax_gradient(View dx, View dy, View y) {
  each_row(dx, dy, y, [](const View& dx, const View& dy, const View& y) {
    double sum = 0;
    for (int64_t j = 0; j < y.size(0); ++j) sum += at(dy, j) * at(y, j);
    for (int64_t j = 0; j < y.size(0); ++j) at(dx, j) = at(y, j) * (at(dy, j) - sum);
  });
}

void log_softmax_gradient(View dx, View dy, View y) {
  each_row(dx, dy, y, [](const View& dx, const View& dy, const View& y) {
    double sum = 0;
    for (int64_t j = 0; j < y.size(0); ++j) sum += at(dy, j);
    for (int64_t j = 0; j < y.size(0); ++j) at(dx, j) = at(dy, j) - std::exp(at(y, j)) * sum;
  });
}

/// The probability that the target gives class j.
double target(int64_t j, int64_t label, int64_t classes, double smoothing) {
  return (j == label ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
}

void cross_entropy_rows(View loss, View lse, View logits, View labels, kernels::CrossEntropy options, void* status) {
  const int64_t classes = logits.size(1);
  for (int64_t r = 0; r < logits.size(0); ++r) {
    const std::vector<double> row = values(part(logits, {r}));
    const int64_t label = at(labels, r).integer();
    const LogSumExp row_lse(row);
    at(lse, r, 0) = row_lse.largest;
    at(lse, r, 1) = row_lse.rest;
    at(loss, r) = 0;
    if (label == options.ignore_index || !inside(label, classes, r, status)) continue;
    double sum = 0;  // of -target * log softmax; a class that the target leaves out adds nothing, whatever its logit
    for (int64_t j = 0; j < classes; ++j)
      if (const double share = target(j, label, classes, options.label_smoothing); share != 0)
        sum -= share * row_lse.log_share(row[j]);
    at(loss, r) = sum;
  }
}

void cross_entropy_gradient(View dlogits, View dloss, View logits, View lse, View labels,
                            kernels::CrossEntropy options) {
  const int64_t classes = logits.size(1);
  for (int64_t r = 0; r < logits.size(0); ++r) {
    const int64_t label = at(labels, r).integer();
    const bool counts = label != options.ignore_index && label >= 0 && label < classes;
    for (int64_t j = 0; j < classes; ++j) {
      const double softmax = std::exp((at(logits, r, j) - at(lse, r, 0)) - at(lse, r, 1));
      at(dlogits, r, j) = counts ? at(dloss, r) * (softmax - target(j, label, classes, options.label_smoothing)) : 0;
    }
  }
}

const Install softmax{kernels::softmax, reference, softmax_rows};
const Install softmax_backward{kernels::softmax_backward, reference, softmax_gradient};
const Install log_softmax{kernels::log_softmax, reference, log_softmax_rows};
const Install log_softmax_backward{kernels::log_softmax_backward, reference, log_softmax_gradient};
const Install cross_entropy{kernels::cross_entropy, reference, cross_entropy_rows};
const Install cross_entropy_backward{kernels::cross_entropy_backward, reference, cross_entropy_gradient};

}  // namespace
}  // namespace cinta::oracle
