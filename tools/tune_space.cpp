// Reading a space, and choosing from it.
#include "tools/tune_space.h"

#include <algorithm>
#include <cmath>

#include "cinta/core/random.h"
#include "cinta/data/file.h"
#include "cinta/data/permutation.h"
#include "cinta/data/strict_json.h"

namespace cinta::tools {
namespace {

using nlohmann::json;

/// The attributes of one distribution, taken one by one; what remains is unknown.
class Attributes {
 public:
  Attributes(std::string place, const json& distribution) : place_(std::move(place)) {
    check(distribution.is_object() && distribution.contains("name") && distribution["name"].is_string() &&
              distribution.contains("attributes") && distribution["attributes"].is_object(),
          R"(expected {"name": .., "attributes": {..}}, found )", distribution.dump());
    rest_ = distribution["attributes"];
  }

  json take(const char* name, json otherwise) {
    json value = rest_.value(name, json());
    rest_.erase(name);
    return value.is_null() ? otherwise : value;
  }
  double number(const char* name, json otherwise) {
    const json value = take(name, std::move(otherwise));
    check(value.is_number() && std::isfinite(value.get<double>()), name, " is a number, found ", value.dump());
    return value.get<double>();
  }
  bool truth(const char* name) {
    const json value = take(name, false);
    check(value.is_boolean(), name, " is true or false, found ", value.dump());
    return value.get<bool>();
  }
  void check_all_taken() const {
    if (!rest_.empty()) check(false, "unknown attribute '", rest_.begin().key(), "'");
  }
  template <class... Parts>
  void check(bool holds, const Parts&... parts) const {
    require<FileError>(holds, "tune", Where(), place_, ": ", parts...);
  }

 private:
  std::string place_;
  json rest_;
};

void read_choices(Attributes& given, Parameter& parameter) {
  const json choices = given.take("choices", json::array());
  given.check(choices.is_array() && !choices.empty(), "choices is a list of at least one value");
  for (const json& choice : choices) {
    given.check(choice.is_primitive() && !choice.is_null(), "a choice is a number, a text, true or false, found ",
                choice.dump());
    parameter.choices.push_back(choice);
  }
}

void read_numbers(Attributes& given, Parameter& parameter) {
  parameter.logarithmic = given.truth("log");
  parameter.low = given.number("low", nullptr);
  parameter.high = given.number("high", nullptr);
  parameter.step = given.number("step", parameter.whole ? json(1) : json(0));
  const double &low = parameter.low, &high = parameter.high, &step = parameter.step;
  given.check(low <= high, "low ", low, " is above high ", high);
  given.check(!parameter.logarithmic || low > 0, "a logarithmic scale begins above 0, found low ", low);
  given.check(step >= 0 && (step > 0 || !parameter.whole), "step is positive, found ", step);
  given.check(!parameter.logarithmic || step == (parameter.whole ? 1 : 0), "log and step exclude each other");
  constexpr double exact = 0x1p53;
  given.check(std::isfinite(high - low) && (step == 0 || (high - low) / step <= exact), "low ", low, " and high ", high,
              " lie too far apart");
  for (double number : {low, high, step})
    given.check(!parameter.whole || (number == std::round(number) && std::abs(number) <= exact), number,
                " is no whole number that is exact");
}

Parameter read_parameter(const std::string& path, const std::string& name, const json& distribution) {
  Attributes given(path + ": " + name, distribution);
  const std::string kind = distribution["name"];
  Parameter parameter{.name = name, .choices = {}, .whole = kind == "IntDistribution", .distribution = distribution};
  if (kind == "CategoricalDistribution") {
    read_choices(given, parameter);
  } else {
    given.check(parameter.whole || kind == "FloatDistribution",
                "expected a FloatDistribution, IntDistribution or CategoricalDistribution, found '", kind, "'");
    read_numbers(given, parameter);
  }
  given.check_all_taken();
  return parameter;
}

/// How many values there are; 0: without number, or on a logarithmic scale.
int64_t count_of(const Parameter& parameter) {
  if (!parameter.choices.empty()) return static_cast<int64_t>(parameter.choices.size());
  if (parameter.low == parameter.high) return 1;
  if (parameter.step == 0 || parameter.logarithmic) return 0;
  return static_cast<int64_t>(std::floor((parameter.high - parameter.low) / parameter.step + 1e-9)) + 1;
}

json number_of(const Parameter& parameter, double value) {
  value = std::clamp(value, parameter.low, parameter.high);
  if (parameter.whole) return static_cast<int64_t>(std::llround(value));
  return value;
}

/// The value with this index among count_of(parameter).
json value_at(const Parameter& parameter, int64_t index) {
  if (!parameter.choices.empty()) return parameter.choices[static_cast<size_t>(index)];
  return number_of(parameter, parameter.low + parameter.step * static_cast<double>(index));
}

/// The number at a part in [0, 1] of the way from low to high, `margin` beyond both.
json number_at(const Parameter& parameter, double part, double margin = 0) {
  double low = parameter.low - margin, high = parameter.high + margin;
  if (!parameter.logarithmic) return number_of(parameter, low + part * (high - low));
  low = std::log(low);
  return number_of(parameter, std::exp(low + part * (std::log(high) - low)));
}

std::vector<json> axis_of(const Parameter& parameter, int64_t points) {
  std::vector<json> values;
  const int64_t count = count_of(parameter);
  const bool all = !parameter.choices.empty() || (count > 0 && count <= points);
  for (int64_t i = 0; i < (all ? count : points); ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(points - 1);
    const json value = all         ? value_at(parameter, i)
                       : count > 0 ? value_at(parameter, std::llround(part * static_cast<double>(count - 1)))
                                   : number_at(parameter, part);
    if (values.empty() || values.back() != value) values.push_back(value);
  }
  return values;
}

}  // namespace

Space read_space(const std::string& path) {
  const json file = data::parse_json(data::read_file(path), "tune", path);
  require<FileError>(file.is_object() && !file.empty(), "tune", Where(), path,
                     ": is not a JSON object of at least one option name and its distribution");
  Space space;
  for (const auto& [name, distribution] : file.items()) space.push_back(read_parameter(path, name, distribution));
  return space;
}

bool fits(const Space& space, const json& params) {
  return params.is_object() && params.size() == space.size() &&
         std::ranges::all_of(space, [&](const Parameter& parameter) {
           const json value = params.value(parameter.name, json());
           return parameter.choices.empty() ? value.is_number()
                                            : std::ranges::find(parameter.choices, value) != parameter.choices.end();
         });
}

json random_values(const Space& space, uint64_t seed, int64_t trial) {
  json values = json::object();
  for (const Parameter& parameter : space) {
    const PhiloxBlock words = random_block(seed, stream_id("tune/" + parameter.name), static_cast<uint32_t>(trial), 0);
    if (const int64_t count = count_of(parameter); count > 0) {
      values[parameter.name] =
          value_at(parameter, static_cast<int64_t>(to_below(words[0], words[1], static_cast<uint64_t>(count))));
    } else {
      const uint64_t word = (uint64_t{words[0]} << 32) | words[1];
      values[parameter.name] =
          number_at(parameter, static_cast<double>(word >> 11) * 0x1p-53, parameter.whole ? 0.5 : 0);
    }
  }
  return values;
}

Grid::Grid(const Space& space, int64_t points, uint64_t seed) {
  constexpr int64_t most = 1'000'000;
  int64_t size = 1;
  for (const Parameter& parameter : space) {
    axes_.emplace_back(parameter.name, axis_of(parameter, points));
    size *= static_cast<int64_t>(axes_.back().second.size());
    require(size <= most, "tune", Where(), "the grid has more than ", most, " points; --sampler random needs no grid");
  }
  order_ = data::permutation(size, seed, 0);
}

json Grid::values(int64_t trial) const {
  json values = json::object();
  int64_t rest = order_[static_cast<size_t>(trial)];
  for (const auto& [name, axis] : axes_) {
    const auto count = static_cast<int64_t>(axis.size());
    values[name] = axis[static_cast<size_t>(rest % count)];
    rest /= count;
  }
  return values;
}

}  // namespace cinta::tools
