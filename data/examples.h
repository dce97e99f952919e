// Labelled rows of numbers: what a classifier is trained on.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cinta/core/error.h"
#include "cinta/data/csv.h"

namespace cinta::data {

struct Examples {
  int64_t count = 0, features = 0, classes = 0;
  std::vector<double> inputs;  ///< [count, features]; double, so that what hardly differs does until it is standardised
  std::vector<int64_t> labels;  ///< [count], each in [0, classes)
  bool has_header = false;      ///< they are from a file whose first line was taken for a header

  /// The inputs as a model reads them.
  std::vector<float> inputs_f32() const { return {inputs.begin(), inputs.end()}; }
};

/// Gives `examples` their labels, found in `file`: whole numbers in [0, classes). `classes` 0: the rows say it
/// themselves, who train a model then: one more than the largest label, but no more than there are rows, and two that
/// have rows at least. Throws FileError for others, naming the file and `place(i)`, where label i stands in it.
void set_labels(Examples& examples, std::span<const double> labels, int64_t classes, const std::string& file,
                const std::function<std::string(int64_t)>& place, Where where = Where::current());

/// What the last column of such a table holds, as messages say it.
inline constexpr std::string_view class_column = "the class, a whole number 0, 1, ..";

/// Examples from a table whose last column is the class. `classes` as for set_labels, which names line and column.
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

/// Shift and scale of each feature, learnt on training rows: x -> (x - mean) / deviation, no further from 0 than
/// `furthest`, so that what was hardly ever seen (a pixel that is blank in all rows but one) cannot outweigh the rest.
/// In double: two times of day, in seconds since 1970, are one number in f32. The deviation of a feature that is
/// constant but for rounding is 1.
struct Standardizer {
  static constexpr double furthest = 5;
  std::vector<double> mean, deviation;
  static Standardizer learn(const Examples& train);
  void apply(Examples& examples, Where where = Where::current()) const;
};

}  // namespace cinta::data
