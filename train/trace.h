// A timeline of training steps in the format of Chrome and Perfetto (ui.perfetto.dev opens it): a slice for each op
// forward and backward with its tensors, an arrow from each forward to its backward, memory by category over time.
#pragma once
#include <memory>
#include <string>

#include "cinta/core/error.h"

namespace cinta::train {

/// While it is on, writes down in memory what runs on this thread. While it is off nothing is asked of an op.
class Trace {
 public:
  Trace();
  /// Off, if it was on. What was not written is lost.
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// Turns it on. All that runs until stop(), on the same thread, lies in a slice called `name`. An observer that
  /// watches already goes on watching.
  void start(const std::string& name);
  void stop();
  /// {"traceEvents":[...]}, one event a line: what the starts and stops so far saw. The file is written whole or not at
  /// all. Throws FileError.
  void write(const std::string& path, Where where = Where::current()) const;

 private:
  class Recorder;
  std::unique_ptr<Recorder> recorder_;
};

}  // namespace cinta::train
