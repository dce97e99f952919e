// What a search chooses from: a file in Optuna's own form, an object of distributions by option name:
//   {"learning_rate": {"name": "FloatDistribution", "attributes": {"low": 1e-5, "high": 1e-2, "log": true}},
//    "hidden": {"name": "CategoricalDistribution", "attributes": {"choices": ["64", "128,64"]}}}
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cinta::tools {

/// The values that one option may take: choices, or numbers.
struct Parameter {
  std::string name;
  std::vector<nlohmann::json> choices;  ///< empty: numbers
  bool whole = false, logarithmic = false;
  double low = 0, high = 0;
  double step = 0;                   ///< between neighbours; 0: any number
  nlohmann::json distribution = {};  ///< as in the file
};
using Space = std::vector<Parameter>;

/// Throws FileError naming the file, the parameter and what is wrong with it.
Space read_space(const std::string& path);

/// Whether `params` has a value for each parameter of the space and for nothing else: a number, or one of its choices.
bool fits(const Space& space, const nlohmann::json& params);

/// An object of option names and values. Each is a function of the seed, the trial and the option's name alone.
nlohmann::json random_values(const Space& space, uint64_t seed, int64_t trial);

/// Every combination of every parameter's values: all of those that have at most `points`, as many of the others,
/// evenly spread (on a logarithmic scale where the space says so). The order is shuffled by the seed, so that a part of
/// the grid covers all of it.
class Grid {
 public:
  /// Throws ValueError for a grid of more than a million points.
  Grid(const Space& space, int64_t points, uint64_t seed);
  int64_t size() const { return static_cast<int64_t>(order_.size()); }
  nlohmann::json values(int64_t trial) const;

 private:
  std::vector<std::pair<std::string, std::vector<nlohmann::json>>> axes_;
  std::vector<int64_t> order_;
};

}  // namespace cinta::tools
