// The body and the heads.
#include "cinta/models/bert/bert.h"

#include "cinta/ops/dropout.h"
#include "cinta/ops/embedding.h"
#include "cinta/ops/shape.h"

namespace cinta::models {
namespace {

Init weight_init(const BertConfig& config) { return {Init::normal, config.initializer_range}; }

void check(const TokenBatch& batch, const Tensor& rows, Where where) {
  require<ShapeError>(batch.ids && batch.ids.rank() == 2, "bert", where, "ids[B,S], given ", batch.ids);
  require<ShapeError>(!batch.offsets || (batch.offsets.rank() == 1 && batch.offsets.size(0) > 0), "bert", where,
                      "offsets[N+1], given ", batch.offsets);
  require<ShapeError>(!rows || rows.rank() == 1, "bert", where, "rows[R], given ", rows);
  require<DtypeError>(!rows || rows.dtype() == Dtype::i64, "bert", where, "rows are i64, given ", rows);
}

/// The rows of the sequences' first tokens.
Tensor first_rows(const TokenBatch& batch, Where where) {
  check(batch, {}, where);
  if (batch.offsets) return cast(slice(batch.offsets, 0, 0, batch.offsets.size(0) - 1), Dtype::i64);
  return arange(batch.ids.size(0), 0, batch.ids.size(1), batch.ids.device());
}

Tensor flat(const Tensor& hidden, Where where) { return reshape(hidden, {-1, hidden.size(-1)}, where); }

}  // namespace

BertModel::BertModel(const EncoderContext& context, bool with_pooler) : embeddings(context), encoder(context) {
  add_child("embeddings", embeddings);
  add_child("encoder", encoder);
  if (!with_pooler) return;
  const int64_t size = context.config->hidden_size;
  pooler_ = std::make_shared<Linear>(size, size, weight_init(*context.config), context.device);
  add_child("pooler.dense", *pooler_);
}

Tensor BertModel::operator()(const TokenBatch& batch, const Tensor& rows, Where where) const {
  check(batch, rows, where);
  NameScope scope("bert");
  return encoder(embeddings(batch, where), batch, rows, where);
}

Tensor BertModel::pool(const Tensor& first, Where where) const {
  NameScope scope("pooler");
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
  return head_(flat(bert(batch, rows, where), where), where);
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
  check(batch, rows, where);
  const Tensor first = first_rows(batch, where);
  Tensor masked, pooled;
  if (rows) {
    const std::vector<Tensor> hidden =
        split(bert(batch, concat({rows, first}, 0, where), where), {rows.size(0), first.size(0)}, 0, where);
    masked = hidden[0];
    pooled = bert.pool(hidden[1], where);
  } else {
    masked = flat(bert(batch, {}, where), where);
    pooled = bert.pool(gather_rows(masked, first, where), where);
  }
  return {head_(masked, where), next_sentence_(pooled, Activation::none, where)};
}

BertWithoutHead::BertWithoutHead(const BertConfig& config, bool with_pooler, uint64_t seed, Device device, Where where)
    : BertBase(config, seed, with_pooler, device, where), with_pooler_(with_pooler) {
  initialize(seed);
}

BertWithoutHead::Output BertWithoutHead::operator()(const TokenBatch& batch, Where where) const {
  const Tensor hidden = bert(batch, {}, where);
  if (!with_pooler_) return {hidden, {}};
  return {hidden, bert.pool(gather_rows(flat(hidden, where), first_rows(batch, where), where), where)};
}

BertForSequenceClassification::BertForSequenceClassification(const BertConfig& config, uint64_t seed, Device device,
                                                             Where where)
    : BertBase(config, seed, true, device, where),
      classifier_(config.hidden_size, config.num_labels, weight_init(config), device) {
  add_child("classifier", classifier_);
  initialize(seed);
}

Tensor BertForSequenceClassification::operator()(const TokenBatch& batch, Where where) const {
  Tensor pooled = bert.pool(bert(batch, first_rows(batch, where), where), where);
  const double own = config().classifier_dropout, p = !training() ? 0 : own < 0 ? config().hidden_dropout_prob : own;
  if (p > 0) pooled = dropout(pooled, random().site("classifier.dropout", p), where);
  return classifier_(pooled, Activation::none, where);
}

}  // namespace cinta::models
