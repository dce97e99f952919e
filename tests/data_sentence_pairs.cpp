// Pairs for next-sentence prediction: who follows whom, how they are laid out, and that nothing but the seed decides.
#include <catch2/catch.hpp>

#include "cinta/data/sentence_pairs.h"
#include "data_helpers.h"
#include "vocabularies.h"

using namespace cinta;
using namespace cinta::data;
using namespace cinta::testing;
using Catch::Contains;

namespace {

/// Documents of 1, 2, .. `documents` segments of five tokens, of which the last in each has but two tokens of text.
Sequences segments_of(int documents) {
  std::vector<Document> texts;
  for (int document = 0; document < documents; ++document) {
    std::string text;
    for (int token = 0; token < 3 * document + 2; ++token)
      text += std::string(1, char('a' + (document * 5 + token) % 26)) + " ";
    texts.push_back({std::to_string(document), text});
  }
  return make_sequences(texts, WordPiece(letters()), segment_length(10));
}

}  // namespace

TEST_CASE("a pair fits its length", "[data]") {
  CHECK(segment_length(10) == 5);
  CHECK(segment_length(11) == 6);
  CHECK(2 * (segment_length(128) - 2) + 3 <= 128);
}

TEST_CASE("the second segment follows, or comes from another document", "[data]") {
  const Sequences segments = segments_of(6);
  const SentencePairs pairs(segments, letters(), 3);
  REQUIRE(pairs.count() == segments.count - 6);  // all but each document's last
  const auto document = [&](int64_t segment) { return segments.documents[static_cast<size_t>(segment)]; };
  int64_t follows = 0, drawn = 0;
  std::vector<int64_t> met(static_cast<size_t>(segments.count));
  for (uint32_t epoch = 0; epoch < 400; ++epoch)
    for (int64_t sample = 0; sample < pairs.count(); ++sample) {
      const SentencePair pair = pairs.pair(sample, epoch);
      if (pair.kind == SecondSegment::follows) {
        ++follows;
        REQUIRE(pair.second == pair.first + 1);
        REQUIRE(document(pair.second) == document(pair.first));
      } else {
        ++drawn;
        REQUIRE((pair.second >= 0 && pair.second < segments.count));
        REQUIRE(document(pair.second) != document(pair.first));
        ++met[static_cast<size_t>(pair.second)];
      }
    }
  const double all = static_cast<double>(follows + drawn), deviation = std::sqrt(all) / 2;
  CHECK(std::abs(static_cast<double>(follows) - all / 2) < 5 * deviation);
  CHECK(std::ranges::count(met, 0) == 0);  // every segment is drawn some time
  const SentencePair again = SentencePairs(segments, letters(), 3).pair(4, 17), once = pairs.pair(4, 17);
  CHECK((again.first == once.first && again.second == once.second && again.kind == once.kind));
}

TEST_CASE("a pair is [CLS] first [SEP] second [SEP]", "[data]") {
  const Sequences segments = segments_of(3);  // ab | fgh ij | klm nop qr
  const SentencePairs pairs(segments, letters(), 3);
  std::vector<int64_t> ids(10), types(10);
  const auto id = [&](const char* token) { return int64_t{letters().id(token)}; };
  CHECK(pairs.write({1, 0, SecondSegment::drawn}, ids, types) == 8);
  CHECK(ids == std::vector<int64_t>{2, id("f"), id("g"), id("h"), 3, id("a"), id("b"), 3, 0, 0});
  CHECK(types == std::vector<int64_t>{0, 0, 0, 0, 0, 1, 1, 1, 0, 0});
  CHECK(pairs.write({3, 4, SecondSegment::follows}, ids, types) == 9);
  CHECK(types == std::vector<int64_t>{0, 0, 0, 0, 0, 1, 1, 1, 1, 0});
}

TEST_CASE("batches of pairs are masked, and their absent samples ask for nothing", "[data]") {
  const Sequences segments = segments_of(6);
  const SentencePairs pairs(segments, letters(), 3);
  const Masker masker(letters(), 5);
  const PairBatches shuffled(pairs, 10, masker, 4, 7), walk(pairs, 10, masker, 4, 7, Walk::in_order);
  const Batch batch = shuffled.batch(3);
  CHECK(batch == shuffled.batch(3));
  CHECK(batch.ids.size() == 40);
  CHECK(batch.types.size() == 40);
  REQUIRE(batch.kinds.size() == 4);
  CHECK(batch.items == static_cast<int64_t>(batch.labels.size()) - std::ranges::count(batch.labels, ignored_label));
  CHECK(std::ranges::count(batch.ids, letters().id("[MASK]")) > 0);
  REQUIRE(pairs.count() % 4 != 0);
  const Batch last = walk.batch(walk.steps_per_epoch() - 1);
  const auto absent = static_cast<size_t>(4 - pairs.count() % 4);
  CHECK(std::ranges::count(last.kinds, ignored_label) == static_cast<int64_t>(absent));
  for (size_t i = 4 - absent; i < 4; ++i) CHECK((last.kinds[i] == ignored_label && last.lengths[i] == 1));
  Prefetcher ahead(shuffled, 2);
  for (int64_t step = 2; step < 9; ++step) CHECK(ahead.next() == shuffled.batch(step));
}

TEST_CASE("a corpus without pairs is refused", "[data]") {
  const WordPiece tokenizer(letters());
  const Sequences single = make_sequences({{"x", "a b"}, {"y", "c"}}, tokenizer, 5);
  CHECK_THAT(error_of<ValueError>([&] { SentencePairs(single, letters(), 1); }), Contains("nothing to follow"));
  const Sequences alone = make_sequences({{"x", "a b c d e f"}}, tokenizer, 5);
  CHECK_THAT(error_of<ValueError>([&] { SentencePairs(alone, letters(), 1); }), Contains("needs a third segment"));
  const Sequences longer = make_sequences({{"x", "a b c d e f g h i"}}, tokenizer, 5);
  const SentencePairs two(longer, letters(), 1);
  for (uint32_t epoch = 0; epoch < 20; ++epoch) {
    const SentencePair pair = two.pair(0, epoch);
    CHECK(pair.second == (pair.kind == SecondSegment::follows ? 1 : 2));
  }
  const Sequences segments = segments_of(3);
  const SentencePairs pairs(segments, letters(), 3);
  const Masker masker(letters(), 5);
  CHECK_THAT(error_of<ValueError>([&] { PairBatches(pairs, 20, masker, 4, 7); }), Contains("segments of 10, given 5"));
}
