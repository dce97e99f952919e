// One sweep over the numbers, a block at a time.
#include "tools/tensor_numbers.h"

#include <algorithm>
#include <cmath>

#include "cinta/data/elements.h"

namespace cinta::tools {

TensorNumbers::TensorNumbers(const data::StoredTensor& tensor)
    : dtype_(tensor.entry->dtype),
      count_(static_cast<int64_t>(tensor.entry->size_bytes()) / size_of(dtype_)),
      bytes_(tensor.entry->size_bytes()),
      block_(static_cast<size_t>(std::min(count_, numbers_per_block))) {
  tensor.read(bytes_.data(), Where());
}

std::span<const double> TensorNumbers::block(int64_t first) {
  const std::span<double> out =
      std::span(block_).first(static_cast<size_t>(std::min(numbers_per_block, count_ - first)));
  data::widen(dtype_, bytes_.data(), first, out);
  return out;
}

Statistics statistics_of(TensorNumbers& numbers) {
  Statistics out;
  double count = 0, mean = 0, squares = 0;  // squares of the distances from the mean
  for (int64_t first = 0; first < numbers.count(); first += numbers_per_block) {
    const std::span<const double> block = numbers.block(first);
    double some = 0, sum = 0;
    for (const double x : block) {
      if (!std::isfinite(x)) {
        ++(std::isnan(x) ? out.nan : out.infinite);
        continue;
      }
      ++some;
      sum += x;
      out.least = std::fmin(out.least, x);
      out.greatest = std::fmax(out.greatest, x);
    }
    if (some == 0) continue;
    const double block_mean = sum / some;
    for (const double x : block)
      if (std::isfinite(x)) squares += (x - block_mean) * (x - block_mean);
    // Two means become one, and so do the sums of squares (Chan, Golub, LeVeque 1979).
    const double apart = block_mean - mean;
    squares += apart * apart * count * some / (count + some);
    mean += apart * some / (count + some);
    count += some;
  }
  if (count > 0) {
    out.mean = mean;
    out.deviation = std::sqrt(squares / count);
  }
  return out;
}

Distance distance_of(TensorNumbers& one, TensorNumbers& other) {
  Distance out;
  for (int64_t first = 0; first < one.count(); first += numbers_per_block) {
    const std::span<const double> a = one.block(first), b = other.block(first);
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
      const double apart = std::abs(a[i] - b[i]);
      if (std::isfinite(apart))
        out.greatest = std::max(out.greatest, apart);
      else
        ++out.not_finite;
    }
  }
  return out;
}

}  // namespace cinta::tools
