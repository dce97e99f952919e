// A causal encoder and one product after it.
#include "cinta/models/character_transformer.h"

#include <cmath>

namespace cinta::models {

BertConfig CharacterTransformer::configuration(int64_t vocab_size, int64_t length, int64_t hidden, int64_t layers,
                                               int64_t heads) {
  BertConfig config;
  config.vocab_size = vocab_size;
  config.max_position_embeddings = length;
  config.hidden_size = hidden;
  config.num_hidden_layers = layers;
  config.num_attention_heads = heads;
  config.intermediate_size = 4 * hidden;
  config.type_vocab_size = 1;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  config.initializer_range = 1 / std::sqrt(static_cast<double>(hidden));
  config.layer_norm_eps = 1e-5;
  return config;
}

CharacterTransformer::CharacterTransformer(const BertConfig& config, uint64_t seed, Device device, Where where)
    : BertBase(config, seed, false, device, true, where) {
  add_parameter(head_weight_, "head.weight", {config.vocab_size, config.hidden_size},
                {Init::normal, config.initializer_range}, device);
  initialize(seed);
}

Tensor CharacterTransformer::operator()(const Tensor& ids, Where where) const {
  const Tensor hidden = bert({.ids = ids}, where);
  NameScope scope("head");
  return linear(hidden, head_weight_, {}, Activation::none, where);
}

}  // namespace cinta::models
