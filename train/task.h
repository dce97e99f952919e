// Task: what is trained. The loop (train/loop.h) knows steps, files and stopping; a task knows its model, data and
// loss.
#pragma once
#include <memory>
#include <string>

#include "cinta/data/loader.h"
#include "cinta/models/model_file.h"
#include "cinta/ops/random.h"
#include "cinta/train/metrics.h"
#include "cinta/train/stop_signals.h"

namespace cinta::train {

class CheckpointWriter;

/// What one micro-batch computes.
struct Forward {
  Tensor loss_sum;  ///< sum over the batch's items, on the tape
  Tensor correct;   ///< number of items predicted right (one element), not on the tape
};

class Task {
 public:
  Task() = default;
  virtual ~Task() = default;
  Task(const Task&) = delete;  // batches point into their task
  Task& operator=(const Task&) = delete;
  virtual models::Module& model() = 0;
  /// The model's dropout numbers, or null.
  virtual Random* random() { return nullptr; }
  virtual const data::BatchSource& batches() const = 0;
  /// Samples of a micro-batch.
  virtual int64_t samples_per_batch() const = 0;
  /// Whether they are laid end to end, as one sample, whose length differs from one micro-batch to the next.
  virtual bool packs_samples() const { return false; }
  virtual Forward forward(const data::Batch& batch) = 0;
  /// Numbers on data that is not trained on; names start with "eval_". Looks at `stop` between batches and returns
  /// nothing once it is set.
  virtual MetricFields evaluate_until(StopFlag stop) = 0;
  MetricFields evaluate() { return evaluate_until({}); }
  /// The names of those numbers, so that a wrong one is found before a run; empty: they are not known before.
  virtual std::vector<std::string> evaluation_names() const { return {}; }
  /// Puts the model's own files (weights, configuration, vocabulary) into a directory being written.
  virtual void save(CheckpointWriter& writer) = 0;
  /// Reads the weights back from such a directory, all of them.
  virtual models::LoadReport load(const std::string& directory) = 0;
  /// What the progress bar counts in a batch, and how that is called.
  virtual int64_t progress_items(const data::Batch& batch) const = 0;
  virtual const char* progress_unit() const = 0;
  virtual const char* accuracy_name() const = 0;
};

}  // namespace cinta::train
