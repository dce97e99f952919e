// Cutting a product along its sum, and putting it together.
#include "cinta/backends/cpu/halves.h"

#include <algorithm>

#include "cinta/backends/cpu/parallel.h"

namespace cinta {

Halves::Halves(const Gemm& whole)
    : rest((whole.m * whole.n + (whole.row_sums ? whole.m : 0)) * static_cast<int64_t>(sizeof(float))),
      first(whole),
      second(whole) {
  first.k = (whole.k + 3) / 4 * 2;
  second.k = whole.k - first.k;
  second.a.data = whole.a.at(0, first.k);
  second.b.data = whole.b.at(first.k, 0);
  second.y = {rest.data(), whole.n, 1, Dtype::f32};
  second.beta = 0;
  if (whole.row_sums) second.row_sums = static_cast<float*>(rest.data()) + whole.m * whole.n;
  second.adds_row_sums = false;
}

void Halves::add_up() const {
  if (first.row_sums)
    for (int64_t i = 0; i < first.m; ++i) first.row_sums[i] += second.row_sums[i];
  parallel_for(first.m, rows_of_tile(first.n), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* y = static_cast<float*>(first.y.at(row, 0));
      const float* more = static_cast<const float*>(second.y.at(row, 0));
#pragma omp simd
      for (int64_t j = 0; j < first.n; ++j) y[j] += more[j];
    }
  });
}

}  // namespace cinta
