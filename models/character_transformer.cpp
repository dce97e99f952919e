// Embedding, pre-norm layers, last norm, head.
#include "cinta/models/character_transformer.h"

#include <cmath>

#include "cinta/ops/attention.h"
#include "cinta/ops/dropout.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/shape.h"

namespace cinta::models {
namespace {

Init weight_init(const BertConfig& config) { return {Init::normal, config.initializer_range}; }

Tensor product(const Tensor& x, const Tensor& weight, Where where) {
  return linear(x, weight, {}, Activation::none, where);
}

}  // namespace

PreNormLayer::PreNormLayer(const BertConfig& config, const Random& random, int64_t index, Device device)
    : config_(config),
      random_(random),
      path_("layer." + std::to_string(index)),
      attention_norm_(config.hidden_size, config.layer_norm_eps, device),
      mlp_norm_(config.hidden_size, config.layer_norm_eps, device) {
  const int64_t size = config.hidden_size, wide = config.intermediate_size;
  add_child("attention.norm", attention_norm_);
  add_parameter(qkv_weight_, "attention.qkv.weight", {3 * size, size}, weight_init(config), device);
  add_parameter(attention_output_, "attention.output.weight", {size, size}, weight_init(config), device);
  add_child("mlp.norm", mlp_norm_);
  add_parameter(mlp_input_, "mlp.input.weight", {wide, size}, weight_init(config), device);
  add_parameter(mlp_output_, "mlp.output.weight", {size, wide}, weight_init(config), device);
  mark_as_block();
}

DropoutSite PreNormLayer::site(const char* name, double p) const {
  return training() && p > 0 ? random_.site(path_ + name, p) : DropoutSite{};
}

Tensor PreNormLayer::operator()(const Tensor& x, Where where) const {
  NameScope scope(path_);
  const AttentionOptions options{.causal = true,
                                 .dropout = site(".attention.probabilities", config_.attention_probs_dropout_prob)};
  const Tensor qkv = product(attention_norm_(x, where), qkv_weight_, where);
  const Tensor mixed = self_attention(qkv, static_cast<int>(config_.num_attention_heads), options, where);
  const Tensor middle = add(
      x,
      dropout(product(mixed, attention_output_, where), site(".attention.output", config_.hidden_dropout_prob), where),
      where);
  const Tensor wide = linear(mlp_norm_(middle, where), mlp_input_, {}, config_.activation(where), where);
  return add(middle,
             dropout(product(wide, mlp_output_, where), site(".mlp.output", config_.hidden_dropout_prob), where),
             where);
}

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
    : TransformerModel(config, seed, device, where),
      word_(config.vocab_size, config.hidden_size, weight_init(config), device),
      position_(config.max_position_embeddings, config.hidden_size, weight_init(config), device),
      norm_(config.hidden_size, config.layer_norm_eps, device) {
  add_child("word_embeddings", word_);
  add_child("position_embeddings", position_);
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    layers_.push_back(std::make_shared<PreNormLayer>(this->config(), random(), i, device));
    add_child("layer." + std::to_string(i), *layers_.back());
  }
  add_child("norm", norm_);
  add_parameter(head_weight_, "head.weight", {config.vocab_size, config.hidden_size}, weight_init(config), device);
  initialize(seed);
}

Tensor CharacterTransformer::embed(const Tensor& ids, Where where) const {
  NameScope scope("embeddings");
  const int64_t length = ids.size(-1), most = config().max_position_embeddings;
  require<ShapeError>(length <= most, "characters", where, "the model has positions for ", most,
                      " characters, given ids of ", ids.shape());
  const Tensor sum = add(word_(ids, where), slice(position_.weight, 0, 0, length, where), where);
  const double p = training() ? config().hidden_dropout_prob : 0;
  return dropout(sum, random().site("embeddings.dropout", p), where);
}

Tensor CharacterTransformer::operator()(const Tensor& ids, Where where) const {
  std::vector<Callback<Tensor(const Tensor&)>> calls;
  for (const auto& layer : layers_)
    calls.push_back([&layer = *layer, where](const Tensor& x) { return layer(x, where); });
  const Tensor hidden = autograd::run_layers(calls, embed(ids, where), checkpoint_policy_);
  NameScope scope("head");
  return product(norm_(hidden, where), head_weight_, where);
}

}  // namespace cinta::models
