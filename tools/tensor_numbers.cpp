// One sweep over the numbers, a block at a time.
#include "tools/tensor_numbers.h"

#include <algorithm>
#include <cmath>

#include "cinta/ops/shape.h"

namespace cinta::tools {

Tensor read_row(const data::StoredTensor& stored) {
  const data::SafetensorsEntry& entry = *stored.entry;
  const int64_t count = static_cast<int64_t>(entry.size_bytes()) / size_of(entry.dtype);
  const Tensor row = empty({count}, entry.dtype.own().value_or(Dtype::f64), cpu);
  if (entry.dtype.own()) {
    stored.read(row.view().data, Where());
    return row;
  }
  entry.dtype.visit([&]<class T>() {
    if constexpr (std::is_integral_v<T> && sizeof(T) > 1) {  // as those that are only carried are
      std::vector<T> numbers(static_cast<size_t>(count));
      stored.read(numbers.data(), Where());
      std::ranges::copy(numbers, static_cast<double*>(row.view().data));
    }
  });
  return row;
}

std::span<const double> TensorNumbers::block(int64_t first) {
  block_ = cast(slice(row_, 0, first, std::min(first + numbers_per_block, count())), Dtype::f64);
  return block_.data<double>();
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

bool same_bytes(const data::StoredTensor& one, const data::StoredTensor& other) {
  std::vector<std::byte> a(one.entry->size_bytes()), b(other.entry->size_bytes());
  one.read(a.data(), Where());
  other.read(b.data(), Where());
  return a == b;
}

}  // namespace cinta::tools
