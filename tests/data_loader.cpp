// Order, batches and the thread that works ahead.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "cinta/core/random.h"
#include "cinta/data/batches.h"
#include "cinta/data/loader.h"
#include "cinta/data/permutation.h"
#include "data_helpers.h"

using namespace cinta;
using namespace cinta::data;
using namespace cinta::testing;
using Catch::Matchers::Contains;

TEST_CASE("A permutation holds every number once", "[data]") {
  for (int64_t count : {0, 1, 2, 3, 7, 64, 1001}) {
    std::vector<int64_t> order = permutation(count, 5, 2);
    CHECK(order == permutation(count, 5, 2));
    if (count > 10) {
      CHECK(order != permutation(count, 5, 3));
      CHECK(order != permutation(count, 6, 2));
    }
    std::sort(order.begin(), order.end());
    REQUIRE(order.size() == static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) REQUIRE(order[static_cast<size_t>(i)] == i);
  }
}

TEST_CASE("All orders are equally likely", "[data]") {
  for (const auto& [count, orders] : {std::pair{4, 24}, std::pair{5, 120}}) {
    std::map<std::vector<int64_t>, int> seen;
    const double expected = 500;
    for (uint32_t epoch = 0; epoch < expected * orders; ++epoch) ++seen[permutation(count, 1, epoch)];
    CHECK(seen.size() == static_cast<size_t>(orders));
    double chi_square = 0;  // mean orders - 1, variance twice that: five deviations above it
    for (const auto& [order, times] : seen) chi_square += std::pow(times - expected, 2) / expected;
    CHECK(chi_square < orders - 1 + 5 * std::sqrt(2.0 * (orders - 1)));
  }
}

TEST_CASE("Each epoch sees every sample once, whatever the batch size", "[data]") {
  for (int64_t batch_size : {1, 3, 10, 64}) {
    const Order order(10, batch_size, 3);
    CHECK(order.steps_per_epoch() == (10 + batch_size - 1) / batch_size);
    std::map<uint32_t, std::multiset<int64_t>> epochs;
    for (int64_t step = 0; step < 2 * 3 * 64; ++step) {
      const std::vector<Draw> draws = order.draws(step);
      CHECK(static_cast<int64_t>(draws.size()) == batch_size);
      for (const Draw& draw : draws) epochs[draw.epoch].insert(draw.sample);
    }
    epochs.erase(--epochs.end());  // may be unfinished
    for (const auto& [epoch, samples] : epochs) {
      CHECK(samples.size() == 10);
      CHECK(std::set<int64_t>(samples.begin(), samples.end()).size() == 10);
    }
  }
  CHECK_THAT(error_of<ValueError>([] { Order(0, 4, 1); }), Contains("there is no sample"));
  CHECK_THAT(error_of<ValueError>([] { Order(4, 0, 1); }), Contains("batch size must be positive, given 0"));
}

TEST_CASE("Without lengths batches are cut from the permutations laid end to end", "[data]") {
  const Order order(10, 3, 5), other(10, 3, 5, Where::current(), {});
  for (int64_t step = 0; step < 100; ++step)
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t epoch = (step * 3 + i) / 10, place = (step * 3 + i) % 10;
      for (const Order* one : {&order, &other}) {
        const Draw draw = one->draws(step)[static_cast<size_t>(i)];
        REQUIRE(draw.epoch == epoch);
        REQUIRE(draw.sample == permutation(10, 5, draw.epoch)[static_cast<size_t>(place)]);
      }
    }
}

namespace {

using Lengths = std::vector<int32_t>;
using Seen = std::vector<std::pair<uint32_t, int64_t>>;

/// From 1 to `longest`, all equally likely.
Lengths random_lengths(int64_t count, uint64_t longest) {
  Lengths out;
  for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i) {
    const PhiloxBlock words = random_block(7, stream_id("test.lengths"), 0, i);
    out.push_back(1 + static_cast<int32_t>(to_below(words[0], words[1], longest)));
  }
  return out;
}

Order balanced(const Lengths& lengths, int64_t batch_size, uint64_t seed = 3) {
  return Order(std::ssize(lengths), batch_size, seed, Where::current(), lengths);
}

/// Epoch and sample of all that some steps see, in their order.
Seen seen(const Order& order, int64_t step, int64_t steps = 1) {
  Seen out;
  for (int64_t i = step; i < step + steps; ++i)
    for (const Draw& draw : order.draws(i)) out.emplace_back(draw.epoch, draw.sample);
  return out;
}

/// By how many tokens some steps differ.
int64_t spread(const Order& order, const Lengths& lengths, int64_t step, int64_t steps) {
  std::vector<int64_t> sums;
  for (int64_t i = step; i < step + steps; ++i) {
    sums.push_back(0);
    for (const Draw& draw : order.draws(i)) sums.back() += lengths[static_cast<size_t>(draw.sample)];
  }
  return std::ranges::max(sums) - std::ranges::min(sums);
}

}  // namespace

TEST_CASE("Balanced batches change places within a window, and nothing else", "[data]") {
  // Of 160 batches an epoch; of 333 1/3; of less than one; of less than a window, whole and not; of one sample.
  for (const auto& [count, batch_size] :
       std::vector<std::pair<int64_t, int64_t>>{{640, 4}, {1000, 3}, {7, 10}, {40, 4}, {30, 4}, {10, 10}, {1, 1}}) {
    INFO(count << " samples in batches of " << batch_size);
    const Lengths lengths = random_lengths(count, 50);
    const Order plain(count, batch_size, 3), order = balanced(lengths, batch_size);
    CHECK(order.steps_per_epoch() == plain.steps_per_epoch());
    CHECK(order.epoch(5) == plain.epoch(5));
    const int64_t window = std::clamp(count / batch_size, int64_t{1}, int64_t{64});
    std::map<uint32_t, std::multiset<int64_t>> epochs;
    bool moved = false;
    for (int64_t begin = 0; begin < 6 * window; begin += window) {
      const Seen expected = seen(plain, begin, window);
      for (int64_t step = begin; step < begin + window; ++step) {
        const Seen found = seen(order, step);
        REQUIRE(std::ssize(found) == batch_size);
        auto place = expected.begin();
        for (const auto& draw : found) {  // each behind the one before it, as in the permutations
          place = std::find(place, expected.end(), draw);
          REQUIRE(place != expected.end());
          ++place;
          epochs[draw.first].insert(draw.second);
        }
        moved = moved || found != seen(plain, step);
      }
      Seen all = seen(order, begin, window), same = expected;
      std::ranges::sort(all), std::ranges::sort(same);
      REQUIRE(all == same);
    }
    CHECK(moved == (window > 1));
    epochs.erase(--epochs.end());  // may be unfinished
    for (const auto& [epoch, samples] : epochs) {
      REQUIRE(std::ssize(samples) == count);
      REQUIRE(std::ssize(std::set<int64_t>(samples.begin(), samples.end())) == count);
    }
  }
  CHECK_THAT(error_of<ValueError>([] { Order(4, 2, 1, Where::current(), Lengths(3)); }),
             Contains("a length for each of 4 samples, or none, given 3"));
}

TEST_CASE("A balanced batch is a pure function of its step, asked from any thread", "[data]") {
  constexpr int64_t steps = 300;  // in windows of 64 batches, of 140 an epoch
  const Lengths lengths = random_lengths(700, 99);
  const Order one = balanced(lengths, 5), other = balanced(lengths, 5), shared = balanced(lengths, 5);
  std::vector<Seen> forward;
  for (int64_t step = 0; step < steps; ++step) forward.push_back(seen(one, step));
  for (int64_t step = steps - 1; step >= 0; --step) REQUIRE(seen(other, step) == forward[static_cast<size_t>(step)]);
  CHECK(seen(balanced(lengths, 5, 4), 0, 64) != seen(one, 0, 64));
  std::array<int64_t, 4> same{};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < same.size(); ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < steps; ++i) {
        const int64_t step = (i * 77 + static_cast<int64_t>(t) * 13) % steps;  // each once
        same[t] += seen(shared, step) == forward[static_cast<size_t>(step)];
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const int64_t number : same) CHECK(number == steps);
}

TEST_CASE("Balanced batches of a window differ by the difference of two lengths at most", "[data]") {
  constexpr int64_t count = 5000, window = 64;
  std::map<std::string, Lengths> all{{"random", random_lengths(count, 512)}, {"equal", Lengths(count, 9)}};
  all["one huge"] = Lengths(count, 2);
  all["one huge"][17] = 1 << 30;
  for (int64_t i = 0; i < count; ++i) {
    all["two kinds"].push_back(i % 2 == 0 ? 1 : 512);
    all["powers"].push_back(1 << i % 20);
  }
  for (const auto& [kind, lengths] : all)
    for (const int64_t batch_size : {1, 2, 7, 32}) {
      INFO(kind << " lengths in batches of " << batch_size);
      const Order order = balanced(lengths, batch_size);
      for (int64_t begin = 0; begin < 4 * window; begin += window) {
        // With falling lengths a, batches j < k differ by the sum of a[i + j] - a[i + k] over the even rounds, which
        // begin at i, less that over the odd ones. None is negative, and all together lie side by side between the
        // longest and the shortest length.
        Lengths drawn;
        for (const auto& [epoch, sample] : seen(order, begin, window))
          drawn.push_back(lengths[static_cast<size_t>(sample)]);
        REQUIRE(spread(order, lengths, begin, window) <= std::ranges::max(drawn) - std::ranges::min(drawn));
      }
    }
  // As they are drawn, 32 lengths each have a standard deviation of 836 tokens; 511 lie between two lengths.
  CHECK(spread(Order(count, 32, 3), all["random"], 0, window) > 511);
}

TEST_CASE("Draws are dealt to a window's batches back and forth, equally long ones as they come", "[data]") {
  constexpr int64_t window = 64;
  Lengths rising(window * 8);
  for (size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<int32_t>(i);
  CHECK(spread(balanced(rising, 8), rising, 0, window) == 0);  // every two rounds have one sum
  rising.resize(window * 7);
  CHECK(spread(balanced(rising, 7), rising, 0, window) == window - 1);  // the seventh is left over
  const Lengths equal(window * 18, 5);
  const Order order = balanced(equal, 9);
  const Seen plain = seen(Order(window * 18, 9, 3), 0, window);
  for (int64_t step = 0; step < window; ++step) {
    const Seen found = seen(order, step);
    for (int64_t round = 0; round < 9; ++round) {
      const int64_t turn = round % 2 == 0 ? step : window - 1 - step;
      REQUIRE(found[static_cast<size_t>(round)] == plain[static_cast<size_t>(round * window + turn)]);
    }
  }
}

TEST_CASE("A step's batch does not depend on the steps before it", "[data]") {
  Examples examples{20, 2, 3, {}, {}};
  for (int i = 0; i < 20; ++i) {
    examples.inputs.insert(examples.inputs.end(), {static_cast<double>(i), static_cast<double>(-i)});
    examples.labels.push_back(i % 3);
  }
  const ExampleBatches one(examples, 8, 5), other(examples, 8, 5);
  std::vector<Batch> forward;
  for (int64_t step = 0; step < 12; ++step) forward.push_back(one.batch(step));
  for (int64_t step = 11; step >= 0; --step) CHECK(other.batch(step) == forward[static_cast<size_t>(step)]);
  for (const Batch& batch : forward) {
    CHECK(batch.items == 8);
    for (size_t i = 0; i < 8; ++i) {
      CHECK(batch.inputs[2 * i + 1] == -batch.inputs[2 * i]);
      CHECK(batch.labels[i] == static_cast<int64_t>(batch.inputs[2 * i]) % 3);
    }
  }
  SECTION("and working ahead changes no bit") {
    for (int64_t depth : {1, 4}) {
      for (int64_t first : {0, 5}) {
        Prefetcher ahead(one, first, depth);
        for (int64_t step = first; step < 12; ++step) CHECK(ahead.next() == forward[static_cast<size_t>(step)]);
      }
    }
  }
}

namespace {

struct Failing : BatchSource {
  Batch batch(int64_t step) const override {
    if (step == 3) throw ValueError("step 3 is broken");
    Batch out;
    out.step = step;
    return out;
  }
};

struct Slow : BatchSource {
  Batch batch(int64_t step) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    Batch out;
    out.step = step;
    return out;
  }
};

}  // namespace

TEST_CASE("What a batch throws reaches the caller at its step", "[data]") {
  const Failing source;
  Prefetcher ahead(source, 0);
  for (int64_t step = 0; step < 3; ++step) CHECK(ahead.next().step == step);
  CHECK(error_of<ValueError>([&] { ahead.next(); }) == "step 3 is broken");
  CHECK(error_of<ValueError>([&] { ahead.next(); }) == "step 3 is broken");
}

TEST_CASE("A prefetcher may be left at any time", "[data]") {
  const Slow source;
  for (int used : {0, 1, 3}) {
    Prefetcher ahead(source, 7, 2);
    for (int i = 0; i < used; ++i) CHECK(ahead.next().step == 7 + i);
  }
}
