// Fisher-Yates, each swap from its own Philox words.
#include "cinta/data/permutation.h"

#include <numeric>
#include <utility>

#include "cinta/core/random.h"

namespace cinta::data {

std::vector<int64_t> permutation(int64_t count, uint64_t seed, uint32_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  constexpr uint32_t stream = stream_id("permutation");
  PhiloxBlock words{};
  for (uint64_t i = order.size(); i > 1; --i) {  // one block of four words serves two swaps
    if (i % 2 == 1 || i == order.size()) words = random_block(seed, stream, epoch, i / 2);
    const size_t pair = i % 2 * 2;
    std::swap(order[i - 1], order[to_below(words[pair], words[pair + 1], i)]);
  }
  return order;
}

}  // namespace cinta::data
