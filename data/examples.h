// Labelled rows of numbers: what a classifier is trained on.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cinta/core/error.h"
#include "cinta/data/csv.h"

namespace cinta::data {

struct Examples {
  int64_t count = 0, features = 0, classes = 0;
  std::vector<float> inputs;    ///< [count, features]
  std::vector<int64_t> labels;  ///< [count], each in [0, classes)
};

/// Examples from a table whose last column is the class (a whole number from 0). `classes` 0: one more than the largest
/// label. Throws FileError naming `name` and the row for a label that is not a class.
Examples examples_from_table(const Table& table, const std::string& name, int64_t classes = 0,
                             Where where = Where::current());

/// The given rows, in the given order.
Examples select(const Examples& examples, std::span<const int64_t> rows);

/// Two parts of one set.
struct Split {
  Examples train, test;
};

/// Cuts off `test_fraction` of the rows (rounded down, at least one) after a seeded permutation. Throws ValueError
/// unless both parts get rows.
Split split(const Examples& examples, double test_fraction, uint64_t seed, Where where = Where::current());

/// Shift and scale of each feature, learnt on training rows: x -> (x - mean) / deviation. A feature that hardly varies
/// is not blown up: its deviation counts as a tenth of the deviation over all features.
struct Standardizer {
  std::vector<float> mean, deviation;
  static Standardizer learn(const Examples& train);
  void apply(Examples& examples, Where where = Where::current()) const;
};

}  // namespace cinta::data
