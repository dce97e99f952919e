// The masked language model's data, forward, evaluation and files.
#include "cinta/train/masked_task.h"

#include "cinta/autograd/mode.h"
#include "cinta/data/wordpiece_trainer.h"
#include "cinta/models/model_file.h"
#include "cinta/ops/loss.h"
#include "cinta/train/model_files.h"

namespace cinta::train {

MaskedCorpus prepare_corpus(const std::string& path, int64_t vocab_size, int64_t length, uint64_t seed,
                            const Callback<void(const std::string&)>& say, Where where) {
  constexpr double held_out_fraction = 0.05;
  constexpr data::TokenizerOptions cased{.lower_case = false, .strip_accents = false};  // code means its capitals
  const data::DocumentSplit split =
      data::split_documents(data::read_documents(path, where), held_out_fraction, seed, where);
  size_t bytes = 0;
  data::WordCounts counts;
  for (const data::Document& document : split.train) {
    bytes += document.text.size();
    data::count_words(counts, document.text, cased, document.path, where);
  }
  data::WordPiece tokenizer(data::learn_vocabulary(counts, vocab_size, where), cased);
  MaskedCorpus corpus{tokenizer, data::make_sequences(split.train, tokenizer, length, where),
                      data::make_sequences(split.held_out, tokenizer, length, where)};
  say(join(path, ": ", split.train.size(), " files (", bytes >> 10, " KiB) to train on, ", split.held_out.size(),
           " held out, ", split.near_duplicates, " near-duplicates dropped; ", tokenizer.vocabulary().size(),
           " tokens, ", corpus.train.count, " + ", corpus.held_out.count, " sequences of ", length));
  return corpus;
}

MaskedTask::MaskedTask(const MaskedCorpus& corpus, models::BertConfig config, int64_t batch_size, uint64_t seed,
                       Device device, Where where)
    : corpus_(corpus),
      batch_size_(batch_size),
      device_(device),
      masker_(corpus.tokenizer.vocabulary(), seed, {}, where) {
  const int64_t tokens = corpus.tokenizer.vocabulary().size();
  require(tokens <= config.vocab_size, "masked_task", where, "the vocabulary has ", tokens, " tokens, vocab_size is ",
          config.vocab_size);
  batches_ =
      std::make_unique<data::MaskedBatches>(corpus.train, masker_, batch_size, seed, data::Walk::shuffled, where);
  held_out_ =
      std::make_unique<data::MaskedBatches>(corpus.held_out, masker_, batch_size, seed, data::Walk::in_order, where);
  bert_ = std::make_unique<models::BertForMaskedLM>(config, seed, device, where);
}

Forward MaskedTask::forward(const data::Batch& batch) {
  const int64_t samples = static_cast<int64_t>(batch.lengths.size()), rows = static_cast<int64_t>(batch.rows.size());
  const models::TokenBatch tokens{.ids = from_values(batch.ids, {samples, corpus_.train.length}, device_),
                                  .lengths = from_values(batch.lengths, {samples}, device_)};
  const Tensor labels = from_values(batch.labels, {rows}, device_);
  const Tensor logits = (*bert_)(tokens, from_values(batch.rows, {rows}, device_));
  return {cross_entropy(logits, labels, {.reduction = Reduction::sum}), count_correct(logits, labels)};
}

MetricFields MaskedTask::evaluate() {
  autograd::NoGrad off;
  bert_->train(false);
  double loss = 0, correct = 0;
  int64_t items = 0;
  for (int64_t step = 0; step < held_out_->steps_per_epoch(); ++step) {
    const data::Batch batch = held_out_->batch(step);
    const Forward part = forward(batch);
    loss += item(part.loss_sum);
    correct += item(part.correct);
    items += batch.items;
  }
  bert_->train(true);
  const double count = static_cast<double>(std::max<int64_t>(1, items));
  return {{"eval_loss", loss / count}, {"eval_masked_accuracy", correct / count}, {"eval_items", items}};
}

void MaskedTask::save(CheckpointWriter& writer) {
  write_model(writer, *bert_);
  write_tokenizer(writer, corpus_.tokenizer);
}

void MaskedTask::load(const std::string& directory) {
  models::require_same(directory, bert_->config(), Where());
  const data::Vocabulary vocabulary = data::Vocabulary::load(directory + "/vocab.txt", Where());
  const int64_t tokens = corpus_.tokenizer.vocabulary().size();
  require<FileError>(vocabulary.size() == tokens, "load", Where(), directory, "/vocab.txt has ", vocabulary.size(),
                     " tokens, the text gives ", tokens);
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    const std::string &there = vocabulary.token(id), &here = corpus_.tokenizer.vocabulary().token(id);
    require<FileError>(there == here, "load", Where(), directory, "/vocab.txt: line ", id + 1, ": found \"", there,
                       "\", but the text gives the vocabulary \"", here, "\" there");
  }
  models::load_weights(*bert_, directory);
}

int64_t MaskedTask::progress_items(const data::Batch& batch) const {
  int64_t tokens = 0;
  for (int32_t length : batch.lengths) tokens += length;
  return tokens;
}

}  // namespace cinta::train
