// Order, batches and the thread that works ahead.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <thread>

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
