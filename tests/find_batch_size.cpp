// The search for the largest batch that fits.
#include "cinta/train/find_batch_size.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace cinta;

TEST_CASE("the largest batch that fits is found with few tries", "[find_batch_size]") {
  for (int64_t most : {1, 2, 3, 7, 64, 100, 1000})
    for (int64_t limit = 1; limit <= most + 1; limit += 1 + limit / 9) {
      int64_t tries = 0;
      const int64_t found = train::find_batch_size(
          [&](int64_t size) {
            CHECK((size >= 1 && size <= most));
            return ++tries, size <= limit;
          },
          most);
      CHECK(found == std::min(limit, most));
      CHECK(tries <= 22);
    }
}

TEST_CASE("a step out of memory does not fit, another error is handed on", "[find_batch_size]") {
  const auto step = [](int64_t size) {
    if (size > 5) throw OutOfMemory("full");
    return true;
  };
  CHECK(train::find_batch_size(step, 1 << 20) == 5);
  CHECK_THROWS_AS(train::find_batch_size([](int64_t) { return false; }, 8), OutOfMemory);
  CHECK_THROWS_AS(train::find_batch_size([](int64_t) -> bool { throw ValueError("no"); }, 8), ValueError);
  CHECK_THROWS_AS(train::find_batch_size(step, 0), ValueError);
}
