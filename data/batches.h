// The batch sources of the reference runs.
#pragma once
#include <cstdint>
#include <span>

#include "cinta/data/examples.h"
#include "cinta/data/loader.h"
#include "cinta/data/masking.h"
#include "cinta/data/sequences.h"

namespace cinta::data {

/// Shuffled rows of a labelled set; `examples` must outlive this.
class ExampleBatches : public BatchSource {
 public:
  ExampleBatches(const Examples& examples, int64_t batch_size, uint64_t seed, Where where = Where::current());
  Batch batch(int64_t step) const override;
  double epoch(int64_t step) const override { return order_.epoch(step); }
  int64_t steps_per_epoch() const { return order_.steps_per_epoch(); }

 private:
  const Examples& examples_;
  Order order_;
};

/// Whether training draws the sequences, or an evaluation walks through them once.
enum class Walk { shuffled, in_order };

/// Masked sequences: `ids`, `lengths`, and for each sample `capacity` rows and labels. `sequences` and `masker` must
/// outlive this. In order, the last batch is filled up with empty samples (length 1, nothing to predict), so that every
/// batch has one shape, and the masks are those of epoch 0. What is shuffled may have batches of about as many tokens.
class MaskedBatches : public BatchSource {
 public:
  MaskedBatches(const Sequences& sequences, const Masker& masker, int64_t batch_size, uint64_t seed,
                Walk walk = Walk::shuffled, Where where = Where::current(), Balance balance = Balance::samples);
  Batch batch(int64_t step) const override;
  double epoch(int64_t step) const override { return order_.epoch(step); }
  int64_t steps_per_epoch() const { return order_.steps_per_epoch(); }
  /// Rows of a batch: batch size times the masker's capacity.
  int64_t rows() const { return batch_size_ * masker_.capacity(length_); }

 protected:
  /// For samples of another kind, which `write` makes; `lengths` are the order's.
  MaskedBatches(int64_t count, int64_t length, const Masker& masker, int64_t batch_size, uint64_t seed, Walk walk,
                Where where, std::span<const int32_t> lengths = {});
  /// Writes a sample's tokens, not yet masked, and what else the batch holds of it. Returns the tokens before the
  /// padding.
  virtual int32_t write(const Draw& draw, std::span<int64_t> ids, Batch& batch) const;

 private:
  const Sequences* sequences_ = nullptr;
  const Masker& masker_;
  int64_t count_, length_, batch_size_;
  Walk walk_;
  Order order_;
};

/// What a model must beat on masked rows: always guessing the most frequent token of the training text, and the
/// training text's token frequencies (each counted once more than it occurs) as prediction.
struct UnigramBaseline {
  double accuracy = 0;  ///< of the most frequent token, on the held-out text
  double loss = 0;      ///< mean negative log-likelihood of the held-out tokens in nats
};
UnigramBaseline unigram_baseline(const Sequences& train, const Sequences& held_out, const Vocabulary& vocabulary);

}  // namespace cinta::data
