// BERT with its heads, parameter for parameter the models that Python users know (names in files are theirs).
#pragma once
#include "cinta/models/bert/encoder.h"
#include "cinta/models/transformer_model.h"

namespace cinta::models {

/// Embeddings, encoder, and optionally the pooler.
class BertModel : public Module {
 public:
  BertModel(const EncoderContext& context, bool with_pooler);
  /// -> hidden states [B,S,H], or of the given rows alone (i64[R], numbers of positions in the flattened [B*S]) [R,H].
  Tensor operator()(const TokenBatch& batch, const Tensor& rows = {}, Where where = Where::current()) const;
  /// tanh(w h + b) of the hidden states [N,H] of the first tokens.
  Tensor pool(const Tensor& first, Where where = Where::current()) const;
  BertEmbeddings embeddings;
  BertEncoder encoder;

 private:
  std::shared_ptr<Linear> pooler_;
};

/// What every BERT with a head holds.
class BertBase : public TransformerModel {
 public:
  void set_checkpoint_policy(autograd::CheckpointPolicy policy) override {
    bert.encoder.checkpoint_policy = std::move(policy);
  }
  BertModel bert;

 protected:
  BertBase(const BertConfig& config, uint64_t seed, bool with_pooler, Device device, Where where);
};

/// The masked-language head: dense, activation, norm, and the word table as output weights.
class MaskedHead : public Module {
 public:
  MaskedHead(const EncoderContext& context, const Tensor& word_table);
  /// h[R,H] -> logits[R,V].
  Tensor operator()(const Tensor& h, Where where = Where::current()) const;

 private:
  const Tensor& word_table_;
  Activation activation_;
  Linear dense_;
  LayerNorm norm_;
  Tensor bias_;
};

class BertForMaskedLM : public BertBase {
 public:
  explicit BertForMaskedLM(const BertConfig& config, uint64_t seed = 0, Device device = cpu,
                           Where where = Where::current());
  /// Logits [R,V] of the given rows (i64[R], numbers of positions in the flattened [B*S]); without rows, of all.
  Tensor operator()(const TokenBatch& batch, const Tensor& rows = {}, Where where = Where::current()) const;
  const char* architecture() const override { return "BertForMaskedLM"; }

 private:
  MaskedHead head_;
};

/// Masked-language and next-sentence heads.
class BertForPreTraining : public BertBase {
 public:
  explicit BertForPreTraining(const BertConfig& config, uint64_t seed = 0, Device device = cpu,
                              Where where = Where::current());
  struct Output {
    Tensor masked;         ///< logits [R,V]
    Tensor next_sentence;  ///< logits [B,2]
  };
  Output operator()(const TokenBatch& batch, const Tensor& rows = {}, Where where = Where::current()) const;
  const char* architecture() const override { return "BertForPreTraining"; }

 private:
  MaskedHead head_;
  Linear next_sentence_;
};

/// The body alone, as a checkpoint of the Python library's BertModel is.
class BertWithoutHead : public BertBase {
 public:
  explicit BertWithoutHead(const BertConfig& config, bool with_pooler = true, uint64_t seed = 0, Device device = cpu,
                           Where where = Where::current());
  struct Output {
    Tensor last_hidden_state;  ///< [B,S,H]
    Tensor pooler_output;      ///< [B,H]; absent without a pooler
  };
  Output operator()(const TokenBatch& batch, Where where = Where::current()) const;
  const char* architecture() const override { return "BertModel"; }

 private:
  bool with_pooler_;
};

/// dropout(pooled) -> classes.
class BertForSequenceClassification : public BertBase {
 public:
  explicit BertForSequenceClassification(const BertConfig& config, uint64_t seed = 0, Device device = cpu,
                                         Where where = Where::current());
  /// -> logits [B, num_labels].
  Tensor operator()(const TokenBatch& batch, Where where = Where::current()) const;
  const char* architecture() const override { return "BertForSequenceClassification"; }

 private:
  Linear classifier_;
};

}  // namespace cinta::models
