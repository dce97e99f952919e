// A small causal Transformer over characters in the arrangement of GPT-2 (Radford et al. 2019): norms before the halves
// of a layer, so that a stream of plain sums runs from the embedding to the last norm. The test bed of everything that
// changes how a model is trained: it learns a page of text in seconds, and shows what its number format loses.
#pragma once
#include <memory>

#include "cinta/models/layers.h"
#include "cinta/models/transformer_model.h"

namespace cinta::models {

/// x + dropout(attention(norm(x))), then the same with the MLP; no product has a bias.
class PreNormLayer : public Module {
 public:
  PreNormLayer(const BertConfig& config, const Random& random, int64_t index, Device device);
  /// x[B,S,H] -> [B,S,H]; a position reads itself and those before.
  Tensor operator()(const Tensor& x, Where where = Where::current()) const;

 private:
  DropoutSite site(const char* name, double p) const;
  const BertConfig& config_;
  const Random& random_;
  std::string path_;
  LayerNorm attention_norm_, mlp_norm_;
  Tensor qkv_weight_, attention_output_, mlp_input_, mlp_output_;
};

/// Names in files: word_embeddings.weight, position_embeddings.weight, layer.0.attention.norm.weight, ..,
/// norm.weight, norm.bias and head.weight, an output matrix of its own.
class CharacterTransformer : public TransformerModel {
 public:
  /// The configuration for `vocab_size` characters and sequences of at most `length`: `layers` layers of width
  /// `hidden`, weights starting with deviation 1/sqrt(hidden), no dropout.
  static BertConfig configuration(int64_t vocab_size, int64_t length, int64_t hidden = 64, int64_t layers = 2,
                                  int64_t heads = 2);
  explicit CharacterTransformer(const BertConfig& config, uint64_t seed = 0, Device device = cpu,
                                Where where = Where::current());
  /// ids[B,S] (i64) -> logits[B,S,V] of the character after each position.
  Tensor operator()(const Tensor& ids, Where where = Where::current()) const;
  void set_checkpoint_policy(autograd::CheckpointPolicy policy) override { checkpoint_policy_ = std::move(policy); }
  const char* architecture() const override { return "CharacterTransformer"; }

 private:
  Tensor embed(const Tensor& ids, Where where) const;
  Embedding word_, position_;
  std::vector<std::shared_ptr<PreNormLayer>> layers_;
  LayerNorm norm_;
  Tensor head_weight_;
  autograd::CheckpointPolicy checkpoint_policy_;
};

}  // namespace cinta::models
