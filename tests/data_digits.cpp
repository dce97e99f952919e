// The digits: the file's layout, the split, and those we draw.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>

#include "cinta/data/digits.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::data;
using namespace cinta::testing;
using Catch::Matchers::Contains;

namespace {

/// Share of test rows whose class has the nearest mean among the training rows.
double nearest_mean_accuracy(const Examples& train, const Examples& test) {
  const size_t features = static_cast<size_t>(train.features);
  std::vector<double> means(10 * features), counts(10);
  for (size_t i = 0; i < train.labels.size(); ++i) {
    const auto label = static_cast<size_t>(train.labels[i]);
    ++counts[label];
    for (size_t f = 0; f < features; ++f) means[label * features + f] += train.inputs[i * features + f];
  }
  int64_t right = 0;
  for (size_t i = 0; i < test.labels.size(); ++i) {
    std::array<double, 10> distance{};
    for (size_t c = 0; c < 10; ++c)
      for (size_t f = 0; f < features; ++f)
        distance[c] += std::pow(test.inputs[i * features + f] - means[c * features + f] / counts[c], 2);
    right += std::min_element(distance.begin(), distance.end()) - distance.begin() == test.labels[i];
  }
  return static_cast<double>(right) / static_cast<double>(test.count);
}

}  // namespace

TEST_CASE("The real digits", "[data]") {
  const std::string path = test_data("optdigits/test.csv");
  if (path.empty()) {
    WARN("skipped: no optdigits/test.csv among the test data");
    return;
  }
  const Examples digits = read_digits(path);
  CHECK(digits.count == 1797);
  CHECK(digits.features == 64);
  CHECK(digits.classes == 10);
  const Split parts = split(digits, 0.2, 1);
  CHECK(parts.test.count == 359);
  CHECK(parts.train.count == 1438);
  CHECK(nearest_mean_accuracy(parts.train, parts.test) > 0.85);
}

TEST_CASE("Digits in another layout are refused", "[data]") {
  const Scratch folder;
  const auto message = [&](const std::string& pixel, const std::string& label, int pixels = 63) {
    std::string text = pixel;
    for (int i = 0; i < pixels; ++i) text += ",0";
    write_bytes(folder / "d.csv", text + "," + label + "\n");
    return error_of<FileError>([&] { read_digits(folder / "d.csv"); });
  };
  CHECK(message("16", "9") == "no error");
  CHECK_THAT(message("17", "9"), Contains("d.csv: line 1: column 1: found 17, expected a pixel in [0, 16]"));
  CHECK_THAT(message("-1", "9"), Contains("found -1, expected a pixel"));
  CHECK_THAT(message("1", "10"),
             Contains("line 1: column 65: found 10, expected the class, a whole number in [0, 10)"));
  CHECK_THAT(message("1", "3", 62), Contains("line 1: found 64 columns, expected 65"));
}

TEST_CASE("A split takes every row once", "[data]") {
  const Examples digits = generate_digits(100, 1);
  const Split parts = split(digits, 0.2, 7), again = split(digits, 0.2, 7), other = split(digits, 0.2, 8);
  CHECK(parts.test.inputs == again.test.inputs);
  CHECK(parts.test.inputs != other.test.inputs);
  std::multiset<std::vector<float>> whole, both;
  for (const Examples* part : {&parts.train, &parts.test, &digits})
    for (int64_t i = 0; i < part->count; ++i) {
      const auto row = part->inputs.begin() + i * 64;
      (part == &digits ? whole : both).insert(std::vector<float>(row, row + 64));
    }
  CHECK(both == whole);
  CHECK_THAT(error_of<ValueError>([&] { split(digits, 1.0, 1); }), Contains("both parts need rows: 100 rows"));
  CHECK_THAT(error_of<ValueError>([&] { split(digits, 0.0, 1); }), Contains("both parts need rows"));
}

TEST_CASE("Digits drawn here are digits", "[data]") {
  const Examples digits = generate_digits(1000, 3);
  CHECK(digits.inputs == generate_digits(1000, 3).inputs);
  CHECK(digits.inputs != generate_digits(1000, 4).inputs);
  const Examples few = generate_digits(10, 3);  // a digit does not depend on how many are drawn
  CHECK(std::equal(few.inputs.begin(), few.inputs.end(), digits.inputs.begin()));
  CHECK(std::all_of(digits.inputs.begin(), digits.inputs.end(),
                    [](float pixel) { return pixel >= 0 && pixel <= 16 && pixel == std::round(pixel); }));
  const Split parts = split(digits, 0.2, 1);
  const double accuracy = nearest_mean_accuracy(parts.train, parts.test);
  CHECK(accuracy > 0.8);    // they can be told apart
  CHECK(accuracy < 0.995);  // but are no stamps
}

TEST_CASE("Digits are drawn in a number that can be", "[data]") {
  for (const int64_t count : {int64_t{-1}, std::numeric_limits<int64_t>::max(), int64_t{1} << 55})
    CHECK_THAT(error_of<ValueError>([&] { generate_digits(count, 0); }),
               Contains("[digits]") && Contains(join("given ", count)) && Contains("data_digits.cpp:"));
  CHECK(generate_digits(0, 0).count == 0);
}
