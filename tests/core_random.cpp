// Random numbers: known answers, and that the distributions are what they are called.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "cinta/core/random.h"

using namespace cinta;

TEST_CASE("Philox4x32-10 gives the published answers", "[core]") {
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr uint32_t all = 0xffffffff;
  CHECK(philox4x32({all, all, all, all}, {all, all}) == PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a word depends on seed, stream, step and element, each with all its bits", "[core]") {
  std::set<uint32_t> words;
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) words.insert(random_word(seed, 0, 0, 0));
  for (uint32_t stream : {1u, 0x80000000u}) words.insert(random_word(0, stream, 0, 0));
  for (uint32_t step : {1u, 0x80000000u}) words.insert(random_word(0, 0, step, 0));
  for (uint64_t element : {uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{4}, uint64_t{1} << 34, uint64_t{1} << 60})
    words.insert(random_word(0, 0, 0, element));
  CHECK(words.size() == 13);
  CHECK(random_word(0, 0, 0, 2) == 0xbc57ac4c);  // the third word of the known block of zeros
}

TEST_CASE("a stream's number is the FNV-1a hash of its name", "[core]") {
  CHECK(stream_id("") == 0x811c9dc5);
  CHECK(stream_id("a") == 0xe40c292c);
  CHECK(stream_id("foobar") == 0xbf9cf968);
}

TEST_CASE("uniform numbers lie in [0, 1) and are uniform", "[core]") {
  CHECK(to_uniform(0) == 0);
  CHECK(to_uniform(0xffffffff) == 1 - 0x1p-24f);
  constexpr int count = 1 << 16, boxes = 16;
  std::array<int, boxes> found{};
  for (uint64_t i = 0; i < count; ++i) ++found[static_cast<size_t>(to_uniform(random_word(3, 1, 4, i)) * boxes)];
  double chi_square = 0;
  for (int n : found) chi_square += std::pow(n - count / boxes, 2) / (count / boxes);
  CHECK(chi_square < 37.7);  // 15 degrees of freedom: exceeded once in a thousand
}

TEST_CASE("whole numbers below a bound reach both ends", "[core]") {
  CHECK(to_below(0, 0, 10) == 0);
  CHECK(to_below(0xffffffff, 0xffffffff, 10) == 9);
  CHECK(to_below(0x80000000, 0, 10) == 5);
  CHECK(to_below(0xffffffff, 0xffffffff, 1) == 0);
}

TEST_CASE("normal numbers have the moments of the normal distribution", "[core]") {
  constexpr uint64_t count = 200000;
  std::array<double, 5> moments{};
  double pairs = 0, previous = 0, largest = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const double x = random_normal(5, 6, 7, i);
    for (size_t k = 1; k <= 4; ++k) moments[k] += std::pow(x, k) / count;
    pairs += x * previous / count;
    largest = std::max(largest, std::abs(x));
    previous = x;
  }
  // Four standard errors of each: sqrt(var(x^k) / n), with var(x) = 1, var(x^2) = 2, var(x^3) = 15, var(x^4) = 96.
  const double root = 4 / std::sqrt(static_cast<double>(count));
  CHECK(std::abs(moments[1]) < root);
  CHECK(std::abs(moments[2] - 1) < root * std::sqrt(2));
  CHECK(std::abs(moments[3]) < root * std::sqrt(15));
  CHECK(std::abs(moments[4] - 3) < root * std::sqrt(96));
  CHECK(std::abs(pairs) < root);
  CHECK(largest > 4);
}
