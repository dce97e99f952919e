// What the numbers of a stored tensor are like, and how far two tensors lie apart.
#pragma once
#include <cstdint>
#include <limits>
#include <span>

#include "cinta/core/tensor.h"
#include "cinta/data/sharded_safetensors.h"

namespace cinta::tools {

inline constexpr int64_t numbers_per_block = 1 << 14;

/// A stored tensor in memory, as one row; what files only carry (u16, ..) as f64.
Tensor read_row(const data::StoredTensor& stored);

/// A tensor of one row given out as numbers, a block at a time (an i64 or u64 beyond 2^53 is rounded).
class TensorNumbers {
 public:
  explicit TensorNumbers(Tensor row) : row_(std::move(row)) {}
  int64_t count() const { return row_.numel(); }
  /// Numbers [first, first + numbers_per_block), or to the end. Valid until the next call.
  std::span<const double> block(int64_t first);

 private:
  Tensor row_, block_;
};

/// Of the finite numbers; NaN where there is none.
struct Statistics {
  double mean = std::numeric_limits<double>::quiet_NaN();
  double deviation = std::numeric_limits<double>::quiet_NaN();  ///< divided by the count, not by one less
  double least = std::numeric_limits<double>::quiet_NaN(), greatest = std::numeric_limits<double>::quiet_NaN();
  int64_t nan = 0, infinite = 0;
};
Statistics statistics_of(TensorNumbers& numbers);

struct Distance {
  double greatest = 0;     ///< |a - b| of the finite pairs; equal infinities and pairs of NaN differ by nothing
  int64_t not_finite = 0;  ///< pairs with a NaN or an infinity that differ
};
/// Both have the same count.
Distance distance_of(TensorNumbers& one, TensorNumbers& other);

/// Whether two tensors of one type and shape are the same bytes: f64, in which numbers are compared, rounds whole ones
/// beyond 2^53.
bool same_bytes(const data::StoredTensor& one, const data::StoredTensor& other);

}  // namespace cinta::tools
