// What the numbers of a stored tensor are like, and how far two tensors lie apart.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "cinta/data/sharded_safetensors.h"

namespace cinta::tools {

inline constexpr int64_t numbers_per_block = 1 << 14;

/// A tensor's bytes in memory, given out as numbers a block at a time.
class TensorNumbers {
 public:
  explicit TensorNumbers(const data::StoredTensor& tensor);
  int64_t count() const { return count_; }
  const std::vector<char>& bytes() const { return bytes_; }
  /// Numbers [first, first + numbers_per_block), or to the end. Valid until the next call.
  std::span<const double> block(int64_t first);

 private:
  Dtype dtype_;
  int64_t count_;
  std::vector<char> bytes_;
  std::vector<double> block_;
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

}  // namespace cinta::tools
