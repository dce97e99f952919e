// A timeline of training steps in the format of Chrome and Perfetto (ui.perfetto.dev opens it): a slice for each op
// forward and backward with its tensors, an arrow from each forward to its backward, memory by category over time.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cinta/core/device.h"
#include "cinta/core/error.h"
#include "cinta/core/memory.h"

namespace cinta::train {

/// A stretch of time: an op forward, its backward, or a phase such as the optimizer's step. Those of one trace nest.
struct TraceSlice {
  enum class Kind { phase, forward, backward };
  static constexpr int64_t unfinished = -1;

  Kind kind;
  std::string name;
  int64_t begin, end = unfinished;  ///< nanoseconds since the trace was made
  std::string module = {}, place = {};
  std::vector<std::string> inputs = {}, outputs = {};  ///< "f32[32,128]@cpu"; backward: outputs are gradients
  int64_t bytes = 0;                                   ///< of inputs and outputs together
  int64_t saved_bytes = 0;                             ///< forward: of what is kept for backward
  uint64_t node = 0;                                   ///< on the tape, 0: not recorded

  /// False for an op that threw.
  bool ended() const { return end != unfinished; }
};

/// The bytes alive on a device, by category, from the end of some slice on.
struct TraceMemory {
  int64_t at;  ///< as TraceSlice::begin
  Device device;
  std::array<int64_t, category_count> live;
};

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
  /// What the starts and stops so far saw; slices in the order in which they began.
  const std::vector<TraceSlice>& slices() const;
  const std::vector<TraceMemory>& memory() const;
  /// {"traceEvents":[...]}, one event a line. The file is written whole or not at
  /// all. Throws FileError.
  void write(const std::string& path, Where where = Where::current()) const;

 private:
  class Recorder;
  std::shared_ptr<Recorder> recorder_;
};

}  // namespace cinta::train
