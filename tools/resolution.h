// What the options of a training come to: the numbers of the run, and which of them follow from something else than
// the option of their name. Training takes the numbers, `cinta config` shows where they come from.
#pragma once
#include <limits>
#include <string>
#include <utility>

#include "cinta/train/loop.h"
#include "tools/commands.h"

namespace cinta::tools {

/// What a count is before the data is read that it depends on.
inline constexpr int64_t unknown_count = std::numeric_limits<int64_t>::min();

class Resolution {
 public:
  explicit Resolution(train::RunOptions run) : run(std::move(run)) {}

  /// Changes the run by `change(run)`; those of its numbers that are others then follow `from`.
  template <class Change>
  void derive(const std::string& from, Change change) {
    const ResolvedValues before = numbers_of(run);
    change(run);
    for (const auto& [name, now] : numbers_of(run))
      if (now.value != before.at(name).value) values[name] = {now.value, from};
  }

  train::RunOptions run;
  ResolvedValues values;

 private:
  /// Of the run those that may follow from other options.
  static ResolvedValues numbers_of(const train::RunOptions& run);
};

}  // namespace cinta::tools
