// Embeddings, layers, encoder.
#include "cinta/models/bert/encoder.h"

#include "cinta/ops/attention.h"
#include "cinta/ops/dropout.h"
#include "cinta/ops/embedding.h"
#include "cinta/ops/normalize.h"
#include "cinta/ops/shape.h"

namespace cinta::models {
namespace {

Init weight_init(const EncoderContext& context) { return {Init::normal, context.config->initializer_range}; }

/// The given rows of x[B,S,H] as [R,H]; absent: x.
Tensor take_rows(const Tensor& x, const Tensor& rows, Where where) {
  return rows ? gather_rows(reshape(x, {-1, x.size(-1)}, where), rows, where) : x;
}

}  // namespace

BertEmbeddings::BertEmbeddings(const EncoderContext& context)
    : word(context.config->vocab_size, context.config->hidden_size, weight_init(context), context.device),
      position(context.config->max_position_embeddings, context.config->hidden_size, weight_init(context),
               context.device),
      type(context.config->type_vocab_size, context.config->hidden_size, weight_init(context), context.device),
      norm(context.config->hidden_size, context.config->layer_norm_eps, context.device),
      context_(context) {
  add_child("word_embeddings", word);
  add_child("position_embeddings", position);
  add_child("token_type_embeddings", type);
  add_child("LayerNorm", norm);
  mark_as_block();
}

Tensor BertEmbeddings::operator()(const TokenBatch& batch, Where where) const {
  NameScope scope("embeddings");
  require(!batch.offsets == !batch.places, "bert", where, "offsets and places are given together, or neither");
  const Tensor x = norm(embedding_sum(word.weight, position.weight, type.weight, batch.ids, batch.types, batch.places,
                                      context_.config->pad_token_id, where),
                        where);
  const double p = training() ? context_.config->hidden_dropout_prob : 0;
  return dropout(x, context_.random->site("embeddings.dropout", p), where);
}

BertLayer::BertLayer(const EncoderContext& context, int64_t index)
    : context_(context),
      path_("layer." + std::to_string(index)),
      attention_output_(context.config->hidden_size, context.config->hidden_size, weight_init(context), context.device),
      intermediate_(context.config->hidden_size, context.config->intermediate_size, weight_init(context),
                    context.device),
      output_(context.config->intermediate_size, context.config->hidden_size, weight_init(context), context.device),
      attention_norm_(context.config->hidden_size, context.config->layer_norm_eps, context.device),
      output_norm_(context.config->hidden_size, context.config->layer_norm_eps, context.device) {
  const int64_t size = context.config->hidden_size;
  auto parts = [&](const std::string& kind) {
    std::vector<Part> out;
    for (const char* name : {"query", "key", "value"})
      out.push_back({"attention.self." + std::string(name) + "." + kind, size});
    return out;
  };
  add_parameter(qkv_weight_, "attention.self.qkv.weight", {3 * size, size}, weight_init(context), context.device,
                parts("weight"));
  add_parameter(qkv_bias_, "attention.self.qkv.bias", {3 * size}, {Init::zeros}, context.device, parts("bias"));
  add_child("attention.output.dense", attention_output_);
  add_child("attention.output.LayerNorm", attention_norm_);
  add_child("intermediate.dense", intermediate_);
  add_child("output.dense", output_);
  add_child("output.LayerNorm", output_norm_);
  mark_as_block();
}

DropoutSite BertLayer::site(const char* name, double p) const {
  return training() && p > 0 ? context_.random->site(path_ + name, p) : DropoutSite{};
}

Tensor BertLayer::mix(const Tensor& own, const Tensor& x, const TokenBatch& batch, const Tensor& rows,
                      Where where) const {
  const BertConfig& config = *context_.config;
  const AttentionOptions options{.lengths = batch.lengths,
                                 .offsets = batch.offsets,
                                 .dropout = site(".attention.probabilities", config.attention_probs_dropout_prob)};
  const auto heads = static_cast<int>(config.num_attention_heads);
  const auto project = [&](const Tensor& in, int64_t first, int64_t end) {
    return linear(in, slice(qkv_weight_, 0, first, end, where), slice(qkv_bias_, 0, first, end, where),
                  Activation::none, where);
  };
  const int64_t size = config.hidden_size;
  if (!rows) return self_attention(linear(x, qkv_weight_, qkv_bias_, Activation::none, where), heads, options, where);
  return self_attention(project(own, 0, size), project(x, size, 3 * size), rows, heads, options, where);
}

Tensor BertLayer::operator()(const Tensor& x, const TokenBatch& batch, const Tensor& rows, Where where) const {
  NameScope scope(path_);
  const BertConfig& config = *context_.config;
  const Tensor own = take_rows(x, rows, where), mixed = mix(own, x, batch, rows, where);
  // Only attention looks at other positions: from here on each row goes its own way.
  const auto of_rows = [&](const DropoutSite& whole) { return rows ? whole.of_rows(rows, x.size(1)) : whole; };
  const Tensor middle = residual_norm(
      attention_output_.without_bias(mixed, where), attention_output_.bias, own, attention_norm_.weight,
      attention_norm_.bias,
      {.eps = attention_norm_.eps, .dropout = of_rows(site(".attention.output", config.hidden_dropout_prob))}, where);
  const Tensor wide = intermediate_(middle, config.activation(where), where);
  return residual_norm(output_.without_bias(wide, where), output_.bias, middle, output_norm_.weight, output_norm_.bias,
                       {.eps = output_norm_.eps, .dropout = of_rows(site(".output", config.hidden_dropout_prob))},
                       where);
}

BertEncoder::BertEncoder(const EncoderContext& context) {
  for (int64_t i = 0; i < context.config->num_hidden_layers; ++i) {
    layers_.push_back(std::make_shared<BertLayer>(context, i));
    add_child("layer." + std::to_string(i), *layers_.back());
  }
}

Tensor BertEncoder::operator()(Tensor x, const TokenBatch& batch, const Tensor& rows, Where where) const {
  NameScope scope("encoder");
  if (layers_.empty()) return take_rows(x, rows, where);
  std::vector<Callback<Tensor(const Tensor&)>> calls;
  for (const auto& layer : layers_)
    calls.push_back([&layer = *layer, batch, wanted = layer == layers_.back() ? rows : Tensor(),
                     where](const Tensor& in) { return layer(in, batch, wanted, where); });
  return autograd::run_layers(calls, std::move(x), checkpoint_policy);
}

}  // namespace cinta::models
