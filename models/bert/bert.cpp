// The body and the heads.
#include "cinta/models/bert/bert.h"

#include "cinta/ops/dropout.h"
#include "cinta/ops/embedding.h"
#include "cinta/ops/shape.h"

namespace cinta::models {
namespace {

Init weight_init(const BertConfig& config) { return {Init::normal, config.initializer_range}; }

/// The given rows of hidden[B,S,H], or all of them, as [R,H].
Tensor take_rows(const Tensor& hidden, const Tensor& rows, Where where) {
  const Tensor flat = reshape(hidden, {-1, hidden.size(-1)}, where);
  return rows ? gather_rows(flat, rows, where) : flat;
}

}  // namespace

BertModel::BertModel(const EncoderContext& context, bool with_pooler) : embeddings(context), encoder(context) {
  add_child("embeddings", embeddings);
  add_child("encoder", encoder);
  if (!with_pooler) return;
  const int64_t size = context.config->hidden_size;
  pooler_ = std::make_shared<Linear>(size, size, weight_init(*context.config), context.device);
  add_child("pooler.dense", *pooler_);
}

Tensor BertModel::operator()(const TokenBatch& batch, Where where) const {
  NameScope scope("bert");
  return encoder(embeddings(batch, where), batch, where);
}

Tensor BertModel::pool(const Tensor& hidden, const TokenBatch& batch, Where where) const {
  NameScope scope("pooler");
  Tensor first;
  if (batch.offsets)
    first = take_rows(hidden, cast(slice(batch.offsets, 0, 0, batch.offsets.size(0) - 1), Dtype::i64), where);
  else
    first = contiguous(squeeze(slice(hidden, 1, 0, 1, where), 1, where));
  return (*pooler_)(first, Activation::tanh, where);
}

BertBase::BertBase(const BertConfig& config, uint64_t seed, bool with_pooler, Device device, Where where)
    : TransformerModel(config, seed, device, where), bert({&this->config(), &random(), device}, with_pooler) {
  add_child("bert", bert);
}

MaskedHead::MaskedHead(const EncoderContext& context, const Tensor& word_table)
    : word_table_(word_table),
      activation_(context.config->activation()),
      dense_(context.config->hidden_size, context.config->hidden_size, weight_init(*context.config), context.device),
      norm_(context.config->hidden_size, context.config->layer_norm_eps, context.device) {
  add_child("transform.dense", dense_);
  add_child("transform.LayerNorm", norm_);
  add_parameter(bias_, "bias", {context.config->vocab_size}, {Init::zeros}, context.device);
  mark_as_block();
}

Tensor MaskedHead::operator()(const Tensor& h, Where where) const {
  NameScope scope("cls.predictions");
  return linear(norm_(dense_(h, activation_, where), where), word_table_, bias_, Activation::none, where);
}

BertForMaskedLM::BertForMaskedLM(const BertConfig& config, uint64_t seed, Device device, Where where)
    : BertBase(config, seed, false, device, where),
      head_({&this->config(), &random(), device}, bert.embeddings.word.weight) {
  add_child("cls.predictions", head_);
  initialize(seed);
}

Tensor BertForMaskedLM::operator()(const TokenBatch& batch, const Tensor& rows, Where where) const {
  return head_(take_rows(bert(batch, where), rows, where), where);
}

BertForPreTraining::BertForPreTraining(const BertConfig& config, uint64_t seed, Device device, Where where)
    : BertBase(config, seed, true, device, where),
      head_({&this->config(), &random(), device}, bert.embeddings.word.weight),
      next_sentence_(config.hidden_size, 2, weight_init(config), device) {
  add_child("cls.predictions", head_);
  add_child("cls.seq_relationship", next_sentence_);
  initialize(seed);
}

BertForPreTraining::Output BertForPreTraining::operator()(const TokenBatch& batch, const Tensor& rows,
                                                          Where where) const {
  const Tensor hidden = bert(batch, where);
  return {head_(take_rows(hidden, rows, where), where),
          next_sentence_(bert.pool(hidden, batch, where), Activation::none, where)};
}

BertWithoutHead::BertWithoutHead(const BertConfig& config, bool with_pooler, uint64_t seed, Device device, Where where)
    : BertBase(config, seed, with_pooler, device, where), with_pooler_(with_pooler) {
  initialize(seed);
}

BertWithoutHead::Output BertWithoutHead::operator()(const TokenBatch& batch, Where where) const {
  const Tensor hidden = bert(batch, where);
  return {hidden, with_pooler_ ? bert.pool(hidden, batch, where) : Tensor()};
}

BertForSequenceClassification::BertForSequenceClassification(const BertConfig& config, uint64_t seed, Device device,
                                                             Where where)
    : BertBase(config, seed, true, device, where),
      classifier_(config.hidden_size, config.num_labels, weight_init(config), device) {
  add_child("classifier", classifier_);
  initialize(seed);
}

Tensor BertForSequenceClassification::operator()(const TokenBatch& batch, Where where) const {
  Tensor pooled = bert.pool(bert(batch, where), batch, where);
  const double p = training() ? config().hidden_dropout_prob : 0;
  if (p > 0) pooled = dropout(pooled, random().site("classifier.dropout", p), where);
  return classifier_(pooled, Activation::none, where);
}

}  // namespace cinta::models
