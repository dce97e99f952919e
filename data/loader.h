// From samples to batches: which samples a step sees is a pure function of (seed, step), so any step can be asked for,
// a run resumes by asking for the next one, and a thread that works ahead changes no bit.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cinta/core/error.h"

namespace cinta::data {

/// One step's data in host memory; the training loop copies it into the step's own tensors, whose addresses stay fixed.
struct Batch {
  int64_t step = 0;
  int64_t items = 0;             ///< labels that count, the divisor of the summed loss
  std::vector<float> inputs;     ///< classifiers: [samples, features]
  std::vector<int64_t> ids;      ///< language models: [samples, length], already masked
  std::vector<int64_t> types;    ///< pairs of sentences: [samples, length], 0 in the first and 1 in the second
  std::vector<int32_t> lengths;  ///< language models: [samples], tokens before the padding
  std::vector<int64_t> rows;     ///< masked models: [capacity], flat positions (sample * length + place) of the targets
  std::vector<int64_t> labels;   ///< [samples], or one for each row; -100 is ignored
  std::vector<int64_t> kinds;    ///< pairs for next-sentence prediction: [samples]; -100 is ignored
  std::vector<int32_t> offsets;  ///< [samples + 1], where samples are laid end to end (data/packing.h)
  std::vector<int64_t> places;   ///< then: [tokens], of each token in its sample
  bool operator==(const Batch&) const;
};

/// Anything that makes the batch of a step. `batch` must be a pure function of `step` and safe to call from any thread.
struct BatchSource {
  virtual ~BatchSource() = default;
  virtual Batch batch(int64_t step) const = 0;
  /// How many times the samples were seen before `step`: 1.5 in the middle of the second epoch; 0 for a stream.
  virtual double epoch(int64_t) const { return 0; }
};

/// The first `count` batches of another source, again and again: what a model that can learn at all must learn.
class RepeatedBatches : public BatchSource {
 public:
  RepeatedBatches(const BatchSource& source, int64_t count) : source_(source), count_(count) {}
  Batch batch(int64_t step) const override { return source_.batch(step % count_); }
  double epoch(int64_t step) const override { return static_cast<double>(step) / static_cast<double>(count_); }

 private:
  const BatchSource& source_;
  int64_t count_;
};

/// A sample and the epoch it is seen in.
struct Draw {
  int64_t sample;
  uint32_t epoch;
};

/// What the batches of a training have as many of: samples, or besides about as many tokens.
enum class Balance { samples, tokens };

/// The order of training: each epoch is its own seeded permutation of 0 .. count-1. Batches are cut from the epochs
/// laid end to end, so all have the same size and no sample is left out.
/// With lengths, draws change places within windows of consecutive batches until these have about as many tokens: the
/// sums of a window's batches differ by the difference of two lengths at most. A draw may so be seen in the steps of
/// the epoch before or after its own, less than a window away; where one ends, a batch may have a sample twice.
class Order {
 public:
  /// `lengths` are those of all samples, in tokens, and must outlive this; without any, batches are not balanced.
  /// Throws ValueError unless there are samples, batches have at least one, and lengths are those of all or none.
  Order(int64_t count, int64_t batch_size, uint64_t seed, Where where = Where::current(),
        std::span<const int32_t> lengths = {});
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;
  /// The samples of a step.
  std::vector<Draw> draws(int64_t step) const;
  /// Steps that see every sample at least once, but for what lengths move across their end.
  int64_t steps_per_epoch() const { return (count_ + batch_size_ - 1) / batch_size_; }
  /// Epochs before a step.
  double epoch(int64_t step) const { return static_cast<double>(step * batch_size_) / static_cast<double>(count_); }

 private:
  struct Cache;  // the permutations and windows last used, so that each is made once
  /// The epochs laid end to end, from place `begin` on.
  std::vector<Draw> stream(int64_t begin, int64_t count) const;
  /// The draws of a window, batch after batch.
  std::vector<Draw> deal(int64_t window) const;
  int64_t count_, batch_size_;
  uint64_t seed_;
  std::span<const int32_t> lengths_;
  int64_t window_batches_;
  std::shared_ptr<Cache> cache_;
};

/// Batches of consecutive steps, made ahead of time by one thread. What the source throws at a step is thrown by the
/// `next` of that step.
class Prefetcher {
 public:
  /// Starts at `first_step`; `source` must outlive this. At most `depth` batches wait.
  Prefetcher(const BatchSource& source, int64_t first_step, int64_t depth = 4);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  Batch next();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cinta::data
