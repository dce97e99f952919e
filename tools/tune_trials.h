// The trials of a search that are over: DIR/trials.jsonl, a JSON object a line.
#pragma once
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cinta/data/atomic_file.h"
#include "tools/tune_space.h"

namespace cinta::tools {

struct Trial {
  int64_t number = 0;
  std::string state = {};  ///< complete, pruned, failed
  nlohmann::json params = {};
  double objective = NAN;  ///< of the last evaluation
  int64_t steps = 0;
  double epoch = 0, seconds = 0;
  std::vector<double> values = {};  ///< the objective at each evaluation
  int exit_code = 0;
  std::string error = {};  ///< the last line that a failed one wrote
};

nlohmann::ordered_json json_of(const Trial& trial);

/// trial-0007
std::string trial_name(int64_t number);

class Trials {
 public:
  /// Reads what is there; a last line that was not written to its end is cut off. Throws FileError naming the line
  /// that is no trial of `space`.
  Trials(const std::string& directory, const Space& space, bool maximize);

  /// Writes the trial down; when it returns, the line is on the disk.
  void append(Trial trial);
  const std::vector<Trial>& all() const { return all_; }
  bool has(int64_t number) const;
  int64_t count(const std::string& state) const;
  bool better(double value, double than) const;
  /// The best of the complete ones; null where there is none.
  const Trial* best() const;

 private:
  bool maximize_;
  std::vector<Trial> all_;
  std::unique_ptr<data::OutputFile> file_;
};

/// Replaces DIR/trials.svg, the objective of each trial and the best so far, and for each parameter
/// DIR/trials-NAME.svg, the objective against its value.
void plot_trials(const std::string& directory, const Trials& trials, const std::string& objective, const Space& space);

}  // namespace cinta::tools
