// Doubling, then bisection.
#include "cinta/train/find_batch_size.h"

#include <algorithm>

namespace cinta::train {

int64_t find_batch_size(const Callback<bool(int64_t)>& fits, int64_t most, Where where) {
  require(most >= 1, "find_batch_size", where, "the largest size to try is 1 or more, given ", most);
  bool held = false;  // of the last try
  const auto holds = [&](int64_t size) {
    try {
      return held = fits(size);
    } catch (const OutOfMemory&) {
      return held = false;
    }
  };
  require<OutOfMemory>(holds(1), "find_batch_size", where, "not even a batch of one sample fits");
  int64_t good = 1, bad = most + 1;
  while (good < most && bad > most) {
    const int64_t next = good > most / 2 ? most : 2 * good;
    (holds(next) ? good : bad) = next;
  }
  while (bad - good > 1) {
    const int64_t middle = good + (bad - good) / 2;
    (holds(middle) ? good : bad) = middle;
  }
  while (!held && !holds(good)) require<OutOfMemory>(--good >= 1, "find_batch_size", where, "no batch fits any more");
  return good;
}

}  // namespace cinta::train
