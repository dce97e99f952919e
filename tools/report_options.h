// The options of a training that say who else is shown its numbers and its steps.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "cinta/train/loop.h"

namespace cinta::tools {

struct ReportOptions {
  std::string report_to = "jsonl", trace, trace_steps = "2:4", report = "html";
  bool exponents = false;

  void add_to(CLI::App& command);
  /// Throws ValueError for values that are none.
  void check() const;
  /// Adds what was asked for to `run`, --trace only where it `may_write`.
  void add_callbacks(train::RunOptions& run, bool may_write) const;
};

}  // namespace cinta::tools
