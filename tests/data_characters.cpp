// Bytes as tokens and windows over them.
#include <catch2/catch.hpp>
#include <set>

#include "cinta/data/characters.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::data;
using namespace cinta::testing;
using Catch::Matchers::Contains;

TEST_CASE("Characters", "[data]") {
  const Characters characters("banana \xff");
  CHECK(characters.bytes() == " abn\xff");
  CHECK(characters.encode("nab") == std::vector<int32_t>{3, 1, 2});
  CHECK(characters.decode(std::vector<int32_t>{3, 1, 2, 4}) == "nab\xff");
  CHECK_THAT(error_of<ValueError>([&] { characters.encode("nax"); }), Contains("byte 2: value 120 is not among the 5"));
  CHECK_THAT(error_of<ValueError>([&] { characters.decode(std::vector<int32_t>{5}); }), Contains("token number 5"));
  CHECK_THAT(error_of<ValueError>([] { Characters(""); }), Contains("an empty text has no characters"));
}

TEST_CASE("Windows see every stretch of the text once an epoch", "[data]") {
  std::vector<int32_t> tokens(101);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i);
  const WindowBatches batches(tokens, 10, 3, 1);
  CHECK(batches.steps_per_epoch() == 3);
  std::set<int64_t> starts;
  for (int64_t step = 0; step < 3; ++step) {
    const Batch batch = batches.batch(step);
    CHECK(batch == batches.batch(step));
    CHECK(batch.items == 30);
    for (size_t i = 0; i < 30; ++i) {
      CHECK(batch.labels[i] == batch.ids[i] + 1);
      CHECK((i % 10 == 0 || batch.ids[i] == batch.ids[i - 1] + 1));
    }
    for (size_t window = 0; window < 3; ++window) starts.insert(batch.ids[10 * window]);
  }
  CHECK(starts.size() == 9);
  CHECK(*starts.rbegin() - *starts.begin() == 80);
  CHECK_THAT(error_of<ValueError>([&] { WindowBatches(std::span(tokens).first(20), 10, 3, 1); }),
             Contains("20 tokens are fewer than two windows of 10"));
}

TEST_CASE("Tiny Shakespeare has 65 characters", "[data]") {
  const std::string path = test_data("tinyshakespeare/input.txt");
  if (path.empty()) {
    WARN("skipped: no tinyshakespeare/input.txt among the test data");
    return;
  }
  const std::string text = read_bytes(path);
  const Characters characters(text);
  CHECK(characters.size() == 65);
  CHECK(characters.decode(characters.encode(text)) == text);
}
