// BERT's embeddings and encoder (Devlin et al. 2019): post-norm Transformer layers.
#pragma once
#include <memory>

#include "cinta/autograd/checkpoint.h"
#include "cinta/models/bert/config.h"
#include "cinta/models/layers.h"
#include "cinta/ops/random.h"

namespace cinta::models {

/// Token sequences as the encoder reads them.
struct TokenBatch {
  Tensor ids;           ///< i64[B,S]
  Tensor types = {};    ///< i64[B,S]; absent: all 0
  Tensor lengths = {};  ///< i32[B], tokens before the padding; absent: all S
  /// Sequences laid end to end, without padding, in one sample (B = 1): sequence n is offsets[n] .. offsets[n+1]
  /// (i32[N+1]), and what lies beyond the last does not exist. Each has its own places[1,S] (i64), and a token at least
  /// where a head reads the first ones. Not with lengths.
  Tensor offsets = {}, places = {};
};

/// What the layers of one model share.
struct EncoderContext {
  const BertConfig* config;
  const Random* random;
  Device device;
};

class BertEmbeddings : public Module {
 public:
  explicit BertEmbeddings(const EncoderContext& context);
  /// -> [B,S,H]. Throws ShapeError for a sequence longer than the position table.
  Tensor operator()(const TokenBatch& batch, Where where = Where::current()) const;
  Embedding word, position, type;
  LayerNorm norm;

 private:
  EncoderContext context_;
};

/// x -> norm(x + dropout(attention(x))) -> norm(x + dropout(mlp(x))). Of `rows` (i64[R], numbers of positions in the
/// flattened [B*S]) alone -> [R,H]: the others are keys and values for them, and nothing else of the layer is computed
/// where nobody reads it.
class BertLayer : public Module {
 public:
  BertLayer(const EncoderContext& context, int64_t index);
  Tensor operator()(const Tensor& x, const TokenBatch& batch, const Tensor& rows = {},
                    Where where = Where::current()) const;

 private:
  DropoutSite site(const char* name, double p) const;
  /// Attention's mixture of the values of x for the queries of `own`: x, or the given rows of it.
  Tensor mix(const Tensor& own, const Tensor& x, const TokenBatch& batch, const Tensor& rows, Where where) const;
  EncoderContext context_;
  std::string path_;
  Tensor qkv_weight_, qkv_bias_;  // query, key and value as one product
  Linear attention_output_, intermediate_, output_;
  LayerNorm attention_norm_, output_norm_;
};

class BertEncoder : public Module {
 public:
  explicit BertEncoder(const EncoderContext& context);
  /// x[B,S,H] -> [B,S,H], or the given rows [R,H] of it, for which the last layer computes less.
  Tensor operator()(Tensor x, const TokenBatch& batch, const Tensor& rows = {}, Where where = Where::current()) const;
  autograd::CheckpointPolicy checkpoint_policy;

 private:
  std::vector<std::shared_ptr<BertLayer>> layers_;
};

}  // namespace cinta::models
