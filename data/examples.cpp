// Labels checked, rows chosen, features standardised. Sums are taken in row order in double, so bits never vary.
#include "cinta/data/examples.h"

#include <algorithm>
#include <cmath>

#include "cinta/data/permutation.h"

namespace cinta::data {

Examples examples_from_table(const Table& table, const std::string& name, int64_t classes, Where where) {
  require<FileError>(table.columns >= 2, "examples", where, name, ": found ", table.columns,
                     " columns, expected features and then the class");
  Examples out{table.rows, table.columns - 1, classes, {}, {}};
  out.inputs.reserve(static_cast<size_t>(out.count * out.features));
  out.labels.reserve(static_cast<size_t>(out.count));
  const float limit = classes > 0 ? static_cast<float>(classes) : 1e6f;
  for (int64_t row = 0; row < table.rows; ++row) {
    const auto begin = table.values.begin() + row * table.columns;
    const float label = begin[out.features];
    if (!(label >= 0 && label < limit && label == std::floor(label)))
      throw FileError(located("examples",
                              join(name, ": line ", table.first_line + row, ": column ", table.columns, ": found ",
                                   label, ", expected the class, a whole number in [0, ", limit, ")"),
                              where));
    out.inputs.insert(out.inputs.end(), begin, begin + out.features);
    out.labels.push_back(static_cast<int64_t>(label));
  }
  if (classes == 0 && out.count > 0) out.classes = *std::max_element(out.labels.begin(), out.labels.end()) + 1;
  return out;
}

Examples select(const Examples& examples, std::span<const int64_t> rows) {
  Examples out{static_cast<int64_t>(rows.size()), examples.features, examples.classes, {}, {}};
  out.inputs.reserve(rows.size() * static_cast<size_t>(examples.features));
  out.labels.reserve(rows.size());
  for (int64_t row : rows) {
    const auto begin = examples.inputs.begin() + row * examples.features;
    out.inputs.insert(out.inputs.end(), begin, begin + examples.features);
    out.labels.push_back(examples.labels[static_cast<size_t>(row)]);
  }
  return out;
}

Split split(const Examples& examples, double test_fraction, uint64_t seed, Where where) {
  const int64_t test = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(examples.count) * test_fraction));
  require(test_fraction > 0 && test < examples.count, "split", where, "both parts need rows: ", examples.count,
          " rows, test fraction ", test_fraction);
  const std::vector<int64_t> order = permutation(examples.count, seed, 0);
  const std::span<const int64_t> rows(order);
  const size_t train = rows.size() - static_cast<size_t>(test);
  return {select(examples, rows.first(train)), select(examples, rows.subspan(train))};
}

Standardizer Standardizer::learn(const Examples& train) {
  constexpr double rounding = 0x1p-48;  // sixteen units in the last place: what sums in another order leave
  const size_t features = static_cast<size_t>(train.features);
  std::vector<double> sum(features), squares(features);
  // From the first row on, which leaves exactly 0 of a constant feature.
  for (size_t i = 0; i < train.inputs.size(); ++i) sum[i % features] += train.inputs[i] - train.inputs[i % features];
  Standardizer out;
  const double count = static_cast<double>(train.count);
  for (size_t f = 0; f < features; ++f) out.mean.push_back(train.inputs[f] + sum[f] / count);
  for (size_t i = 0; i < train.inputs.size(); ++i) {
    const double from_mean = train.inputs[i] - out.mean[i % features];
    squares[i % features] += from_mean * from_mean;
  }
  for (size_t f = 0; f < features; ++f) {
    const double deviation = std::sqrt(squares[f] / count);
    out.deviation.push_back(deviation > rounding * std::abs(out.mean[f]) ? deviation : 1);
  }
  return out;
}

void Standardizer::apply(Examples& examples, Where where) const {
  require<ShapeError>(static_cast<size_t>(examples.features) == mean.size(), "standardize", where, "learnt on ",
                      mean.size(), " features, given ", examples.features);
  for (size_t i = 0; i < examples.inputs.size(); ++i) {
    const size_t feature = i % mean.size();
    examples.inputs[i] = std::clamp((examples.inputs[i] - mean[feature]) / deviation[feature], -furthest, furthest);
  }
}

}  // namespace cinta::data
