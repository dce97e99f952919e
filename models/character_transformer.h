// A small causal Transformer over characters: BERT's layers, each position seeing those before it. The test bed of
// everything that changes how a model is trained; it learns a page of text in seconds.
#pragma once
#include "cinta/models/bert/bert.h"

namespace cinta::models {

/// Names in files are those of the encoder's ("bert.") and "head.weight", an output matrix of its own, without bias.
class CharacterTransformer : public BertBase {
 public:
  /// The configuration for `vocab_size` characters and sequences of at most `length`: `layers` layers of width
  /// `hidden`, weights starting with deviation 1/sqrt(hidden), no dropout.
  static BertConfig configuration(int64_t vocab_size, int64_t length, int64_t hidden = 64, int64_t layers = 2,
                                  int64_t heads = 2);
  explicit CharacterTransformer(const BertConfig& config, uint64_t seed = 0, Device device = cpu,
                                Where where = Where::current());
  /// ids[B,S] (i64) -> logits[B,S,V] of the character after each position.
  Tensor operator()(const Tensor& ids, Where where = Where::current()) const;
  const char* architecture() const override { return "CharacterTransformer"; }

 private:
  Tensor head_weight_;
};

}  // namespace cinta::models
