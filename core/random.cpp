// The normal distribution on top of Philox.
#include "cinta/core/random.h"

#include <cmath>
#include <numbers>

namespace cinta {

double random_normal(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element) {
  const PhiloxBlock words = random_block(seed, stream, step, element / 4);
  const size_t pair = element % 4 / 2 * 2;
  const double u = (words[pair] + 1.0) * 0x1p-32, angle = 2 * std::numbers::pi * (words[pair + 1] * 0x1p-32);
  return std::sqrt(-2 * std::log(u)) * (element % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

}  // namespace cinta
