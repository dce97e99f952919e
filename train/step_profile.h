// All that one training step shows of itself: its timeline, its tape, and what was in memory when most was.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cinta/models/module.h"
#include "cinta/train/live_tensors.h"
#include "cinta/train/tape_graph.h"
#include "cinta/train/trace.h"

namespace cinta::train {

struct StepProfile {
  int64_t step = 0;
  std::vector<TraceSlice> slices;  ///< the first is the whole step; nodes are numbered as in `tape`
  std::vector<TraceMemory> memory;
  std::vector<TapeNode> tape;  ///< as it was when the first backward began: of one micro-batch
  MemoryPeak peak;
};

/// Watches what runs on this thread from its construction to finish(). Watchers that were there before go on watching.
class StepProfiler {
 public:
  StepProfiler(const models::Module& model, int64_t step);
  ~StepProfiler();
  StepProfiler(const StepProfiler&) = delete;
  StepProfiler& operator=(const StepProfiler&) = delete;

  StepProfile finish();

 private:
  class Watchers;
  int64_t step_;
  std::shared_ptr<Watchers> watchers_;
  Trace trace_;
};

}  // namespace cinta::train
