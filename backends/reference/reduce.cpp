// Reductions: every input element adds to the output element at its position, read with 0 in the reduced dimensions.
#include "cinta/backends/kernels/reduce.h"

#include <cmath>
#include <limits>

#include "cinta/backends/reference/element.h"

namespace cinta::oracle {
namespace {

/// Which output element (by row-major number) an input element goes to.
int64_t target(const Shape& output, const Index& input) {
  int64_t number = 0;
  for (int dim = 0; dim < output.rank(); ++dim) number = number * output[dim] + (output[dim] == 1 ? 0 : input[dim]);
  return number;
}

void sum_elements(View y, View x, float beta) {
  std::vector<double> sums(static_cast<size_t>(y.numel()), 0);
  for (const Index& i : Indices(x.shape)) sums[target(y.shape, i)] += at(x, i);
  for (int64_t n = 0; n < y.numel(); ++n) blend(nth(y, n), sums[n], beta);
}

void max_elements(View y, View x) {
  std::vector<double> largest(static_cast<size_t>(y.numel()), -std::numeric_limits<double>::infinity());
  for (const Index& i : Indices(x.shape)) {
    double& so_far = largest[target(y.shape, i)];
    const double value = at(x, i);
    if (value > so_far || std::isnan(value)) so_far = value;
  }
  for (int64_t n = 0; n < y.numel(); ++n) nth(y, n) = largest[n];
}

void argmax_elements(View y, View x, int dim) {
  for (const Index& i : Indices(y.shape)) {
    Index best = i, candidate = i;
    for (candidate[dim] = 1; candidate[dim] < x.size(dim); ++candidate[dim]) {
      const double value = at(x, candidate), so_far = at(x, best);
      if (value > so_far || (std::isnan(value) && !std::isnan(so_far))) best = candidate;
    }
    at(y, i).set_integer(best[dim]);
  }
}

void add_squares(View y, View x) {
  double sum = 0;
  for (const Index& i : Indices(x.shape)) sum += at(x, i) * at(x, i);
  nth(y, 0) = sum;
}

const Install sum{kernels::sum, reference, sum_elements};
const Install max{kernels::max, reference, max_elements};
const Install argmax{kernels::argmax, reference, argmax_elements};
const Install sum_of_squares{kernels::sum_of_squares, reference, add_squares};

}  // namespace
}  // namespace cinta::oracle
