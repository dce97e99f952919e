// The order of an epoch: a pure function of (seed, epoch).
#pragma once
#include <cstdint>
#include <vector>

namespace cinta::data {

/// A permutation of 0 .. count-1, uniform over all orders (Fisher-Yates on Philox words of stream "permutation").
std::vector<int64_t> permutation(int64_t count, uint64_t seed, uint32_t epoch);

}  // namespace cinta::data
