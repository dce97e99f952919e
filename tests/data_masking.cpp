// The masked-language task: shares, purity, fixed capacity, and the batches made of it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "cinta/data/batches.h"
#include "cinta/data/masking.h"
#include "data_helpers.h"
#include "vocabularies.h"

using namespace cinta;
using namespace cinta::data;
using namespace cinta::testing;
using Catch::Matchers::Contains;

namespace {

Vocabulary vocabulary_of(int ordinary) {
  std::vector<std::string> tokens;
  for (int i = 0; i < ordinary; ++i) tokens.push_back("t" + std::to_string(i));
  return with_specials(tokens);
}

/// `count` sequences of `length`, the i-th with `i % length` places of padding as far as room is left.
Sequences make(int64_t count, int64_t length, int64_t ordinary) {
  SequenceArrays out;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t used = std::max<int64_t>(3, length - i % 5);
    for (int64_t t = 0; t < length; ++t)
      out.ids.push_back(t == 0          ? 2
                        : t >= used     ? 0
                        : t == used - 1 ? 3
                                        : static_cast<int32_t>(5 + (i * 7 + t * 13) % ordinary));
    out.lengths.push_back(static_cast<int32_t>(used));
  }
  return sequences_of(length, out);
}

}  // namespace

TEST_CASE("Masks follow the shares", "[data]") {
  const Vocabulary vocabulary = vocabulary_of(1000);
  const Masker masker(vocabulary, 1);
  constexpr int64_t length = 64, samples = 4000;
  REQUIRE(masker.capacity(length) == 9);  // 15 % of 62
  int64_t masked = 0, random = 0, kept = 0;
  std::vector<int64_t> at(length);
  for (int64_t sample = 0; sample < samples; ++sample) {
    std::vector<int64_t> ids(length), places(9), labels(9);
    for (int64_t t = 0; t < length; ++t)
      ids[static_cast<size_t>(t)] = t == 0 ? 2 : t == 63 ? 3 : 5 + (sample + t) % 1000;
    const std::vector<int64_t> before = ids;
    REQUIRE(masker.mask(ids, 3, sample, places, labels) == 9);
    REQUIRE(std::is_sorted(places.begin(), places.end()));
    REQUIRE(std::adjacent_find(places.begin(), places.end()) == places.end());
    size_t next = 0;
    for (size_t t = 0; t < ids.size(); ++t) {
      if (next == 9 || places[next] != static_cast<int64_t>(t)) {
        REQUIRE(ids[t] == before[t]);
        continue;
      }
      REQUIRE((t != 0 && t != 63));
      REQUIRE(labels[next++] == before[t]);
      ++at[t];
      ++(ids[t] == 4 ? masked : ids[t] == before[t] ? kept : random);
      REQUIRE(ids[t] >= 4);
    }
  }
  const double total = 9.0 * samples;  // five standard deviations of a binomial share
  const auto near = [&](int64_t count, double share) {
    return std::abs(static_cast<double>(count) / total - share) < 5 * std::sqrt(share * (1 - share) / total);
  };
  CHECK(near(masked, 0.8));
  CHECK(near(random, 0.1 * 999 / 1000));  // a random token may be the one that stood there
  CHECK(near(kept, 0.1 + 0.1 / 1000));
  for (size_t t = 1; t < 63; ++t) {  // every place is equally likely
    const double share = 9.0 / 62, deviation = std::sqrt(samples * share * (1 - share));
    CHECK(std::abs(static_cast<double>(at[t]) - samples * share) < 5 * deviation);
  }
}

TEST_CASE("A mask is a pure function of seed, epoch and sample", "[data]") {
  const Vocabulary vocabulary = vocabulary_of(100);
  const auto masked = [&](uint64_t seed, uint32_t epoch, int64_t sample) {
    std::vector<int64_t> ids(40, 7), places(6), labels(6);
    Masker(vocabulary, seed).mask(ids, epoch, sample, places, labels);
    ids.insert(ids.end(), places.begin(), places.end());
    return ids;
  };
  const auto masked_alone = [&](uint32_t epoch, int64_t sample) {
    std::vector<int64_t> ids = {2, 7, 3}, places(1), labels(1);
    Masker(vocabulary, 1).mask(ids, epoch, sample, places, labels);
    return ids[1];
  };
  CHECK(masked(1, 2, 3) == masked(1, 2, 3));
  CHECK(masked(1, 2, 3) != masked(2, 2, 3));
  CHECK(masked(1, 2, 3) != masked(1, 3, 3));
  CHECK(masked(1, 2, 3) != masked(1, 2, 4));
  std::set<int64_t> became;  // the one target's fate is drawn anew for each epoch and each sample
  for (uint32_t epoch = 0; epoch < 100; ++epoch) became.insert(masked_alone(epoch, 1));
  CHECK(became.size() > 5);
  became.clear();
  for (int64_t sample = 0; sample < 100; ++sample) became.insert(masked_alone(1, sample));
  CHECK(became.size() > 5);
}

TEST_CASE("Short and special sequences leave seats ignored", "[data]") {
  const Masker masker(vocabulary_of(10), 1);
  std::vector<int64_t> ids = {2, 6, 3, 0, 0}, places(3, 77), labels(3, 77);
  CHECK(masker.mask(ids, 0, 0, places, labels) == 1);
  CHECK(places == std::vector<int64_t>{1, 0, 0});
  CHECK(labels == std::vector<int64_t>{6, ignored_label, ignored_label});
  ids = {2, 3, 0, 0, 0};
  CHECK(masker.mask(ids, 0, 0, places, labels) == 0);
  CHECK(ids == std::vector<int64_t>{2, 3, 0, 0, 0});
  CHECK(std::count(labels.begin(), labels.end(), ignored_label) == 3);
}

TEST_CASE("A masker refuses what it cannot do", "[data]") {
  const Vocabulary vocabulary = vocabulary_of(3);
  CHECK_THAT(error_of<ValueError>([&] { Masker(vocabulary, 1, {.rate = 0}); }),
             Contains("rate must lie in (0, 1], given 0"));
  CHECK_THAT(error_of<ValueError>([&] { Masker(vocabulary, 1, {.replaced = 0.95}); }),
             Contains("nor exceed 1 together"));
  CHECK_THAT(error_of<ValueError>([] { Masker(vocabulary_of(0), 1); }), Contains("special tokens only"));
  CHECK_THAT(error_of<ValueError>([] { Masker(Vocabulary({"[UNK]", "a"}), 1); }), Contains("no token \"[MASK]\""));
  std::vector<int64_t> ids = {8}, places(1), labels(1);
  CHECK_THAT(error_of<ValueError>([&] { Masker(vocabulary, 1).mask(ids, 0, 0, places, labels); }),
             Contains("token number 8 outside [0, 8)"));
}

TEST_CASE("Masked batches", "[data]") {
  const Vocabulary vocabulary = vocabulary_of(50);
  const Masker masker(vocabulary, 9);
  const Sequences sequences = make(10, 22, 50);
  const MaskedBatches batches(sequences, masker, 4, 3);
  CHECK(batches.rows() == 12);  // 4 samples, 15 % of 20 each
  for (int64_t step : {0, 5, 2}) {
    const Batch batch = batches.batch(step);
    CHECK(batch == batches.batch(step));
    CHECK(batch.ids.size() == 4 * 22);
    CHECK(batch.rows.size() == 12);
    CHECK(batch.items == 12 - std::count(batch.labels.begin(), batch.labels.end(), ignored_label));
    for (size_t row = 0; row < 12; ++row) {
      const int64_t sample = batch.rows[row] / 22, place = batch.rows[row] % 22;
      CHECK(sample == static_cast<int64_t>(row) / 3);
      if (batch.labels[row] != ignored_label) CHECK(place < batch.lengths[static_cast<size_t>(sample)] - 1);
    }
  }
  SECTION("in order they end with absent samples") {
    const MaskedBatches walk(sequences, masker, 4, 3, Walk::in_order);
    CHECK(walk.steps_per_epoch() == 3);
    const Batch first = walk.batch(0), last = walk.batch(2);
    CHECK(first.lengths == std::vector<int32_t>{22, 21, 20, 19});
    CHECK(last.lengths == std::vector<int32_t>{19, 18, 1, 1});  // samples 8 and 9
    CHECK(std::count(last.labels.begin() + 6, last.labels.end(), ignored_label) == 6);
  }
  SECTION("and a prefetcher changes no bit") {
    Prefetcher ahead(batches, 1);
    for (int64_t step = 1; step < 9; ++step) CHECK(ahead.next() == batches.batch(step));
  }
}

TEST_CASE("The unigram baseline", "[data]") {
  const Vocabulary vocabulary = vocabulary_of(2);
  const Sequences train = sequences_of(5, {{2, 5, 5, 6, 3}, {5}, {}}),
                  held_out = sequences_of(5, {{2, 5, 6, 3, 0}, {4}, {}});
  const UnigramBaseline baseline = unigram_baseline(train, held_out, vocabulary);
  CHECK(baseline.accuracy == Approx(0.5));
  CHECK(baseline.loss == Approx(-(std::log(3.0 / 5) + std::log(2.0 / 5)) / 2));  // each counted once more
}
