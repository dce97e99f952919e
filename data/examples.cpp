// Labels checked, rows chosen, features standardised. Sums are taken in row order in double, so bits never vary.
#include "cinta/data/examples.h"

#include <algorithm>
#include <cmath>

#include "cinta/data/permutation.h"

namespace cinta::data {

void set_labels(Examples& examples, std::span<const double> labels, int64_t classes, const std::string& file,
                const std::function<std::string(int64_t)>& place, Where where) {
  const int64_t count = static_cast<int64_t>(labels.size()), limit = classes > 0 ? classes : count;
  for (int64_t i = 0; i < count; ++i) {
    const double label = labels[static_cast<size_t>(i)];
    const bool whole = label == std::floor(label);
    if (whole && label >= 0 && label < static_cast<double>(limit)) {
      examples.labels.push_back(static_cast<int64_t>(label));
      continue;
    }
    const bool quantity = classes == 0 && whole && label > 0;
    throw FileError(
        located("examples",
                join(file, ": ", place(i), ": found ",
                     whole && std::abs(label) < 0x1p53 ? join(std::llround(label)) : join(label),
                     ", expected the class, a whole number in [0, ", limit, ")",
                     quantity ? ": there would be more classes than rows; quantities are not learnt here" : ""),
                where));
  }
  examples.classes = classes;
  if (classes > 0 || count == 0) return;
  const auto [least, most] = std::ranges::minmax(examples.labels);
  require<FileError>(least != most, "examples", where, file, ": every row is of class ", most,
                     ", expected two classes at least");
  examples.classes = most + 1;
}

Examples examples_from_table(const Table& table, const std::string& name, int64_t classes, Where where) {
  require<FileError>(table.columns >= 2, "examples", where, name, ": found ", table.columns,
                     " columns, expected features and then the class");
  Examples out{table.rows, table.columns - 1, 0, {}, {}};
  out.inputs.reserve(static_cast<size_t>(out.count * out.features));
  std::vector<double> labels;
  for (int64_t row = 0; row < table.rows; ++row) {
    const auto begin = table.values.begin() + row * table.columns;
    out.inputs.insert(out.inputs.end(), begin, begin + out.features);
    labels.push_back(begin[out.features]);
  }
  out.has_header = table.has_header();
  const auto place = [&](int64_t row) { return join("line ", table.first_line + row, ": column ", table.columns); };
  set_labels(out, labels, classes, name, place, where);
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
