// The text classifier's forward, evaluation and files.
#include "cinta/train/text_classify_task.h"

#include "cinta/autograd/mode.h"
#include "cinta/data/packing.h"
#include "cinta/data/wordpiece_files.h"
#include "cinta/models/model_file.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/reduce.h"
#include "cinta/train/model_files.h"
#include "cinta/train/token_batch.h"

namespace cinta::train {

double Confusion::accuracy() const {
  int64_t right = 0, all = 0;
  for (int64_t row = 0; row < classes; ++row)
    for (int64_t column = 0; column < classes; ++column) {
      const int64_t count = counts[static_cast<size_t>(row * classes + column)];
      all += count;
      if (row == column) right += count;
    }
  return static_cast<double>(right) / static_cast<double>(std::max<int64_t>(1, all));
}

double Confusion::macro_f1() const {
  double sum = 0;
  int64_t met = 0;
  for (int64_t one = 0; one < classes; ++one) {
    int64_t truly = 0, guessed = 0;
    for (int64_t other = 0; other < classes; ++other) {
      truly += counts[static_cast<size_t>(one * classes + other)];
      guessed += counts[static_cast<size_t>(other * classes + one)];
    }
    if (truly + guessed == 0) continue;
    ++met;
    sum += 2 * static_cast<double>(counts[static_cast<size_t>(one * classes + one)]) /
           static_cast<double>(truly + guessed);
  }
  return sum / static_cast<double>(std::max<int64_t>(1, met));
}

void require_segments(const data::LabelledText& text, const models::BertConfig& config, const std::string& name,
                      Where where) {
  require(text.second.empty() || config.type_vocab_size > 1, "pairs", where, name,
          ": holds pairs of texts; the model has one segment type (type_vocab_size 1) and takes single texts");
}

TextClassifyTask::TextClassifyTask(const TextClassifyData& data, models::BertConfig config, int64_t batch_size,
                                   uint64_t seed, Device device, Where where, data::Balance balance)
    : data_(data), batch_size_(batch_size), device_(device) {
  const int64_t tokens = data.tokenizer.vocabulary().size();
  require(tokens <= config.vocab_size, "text_classify_task", where, "the vocabulary has ", tokens,
          " tokens, vocab_size is ", config.vocab_size);
  config.num_labels = static_cast<int64_t>(config.label_names.size());
  batches_ = std::make_shared<data::ClassifiedBatches>(data.train, batch_size, seed, where, balance);
  bert_ = std::make_shared<models::BertForSequenceClassification>(config, seed, device, where);
}

std::pair<Tensor, Tensor> TextClassifyTask::compute(const data::Batch& batch) {
  const models::TokenBatch tokens =
      padding_free_ ? token_batch(data::packed(batch), device_) : token_batch(batch, device_);
  return {(*bert_)(tokens), from_values(batch.labels, {static_cast<int64_t>(batch.labels.size())}, device_)};
}

Forward TextClassifyTask::forward(const data::Batch& batch) {
  const auto [logits, labels] = compute(batch);
  return {cross_entropy(logits, labels, {.reduction = Reduction::sum}), count_correct(logits, labels)};
}

MetricFields TextClassifyTask::evaluate_until(StopFlag stop) {
  autograd::NoGrad off;
  const data::ClassifiedBatches samples(data_.test, batch_size_, 0);
  const int64_t count = data_.test.sequences.count;
  Confusion found{bert_->config().num_labels, {}};
  found.counts.resize(static_cast<size_t>(found.classes * found.classes));
  bert_->train(false);
  double loss = 0;
  for (int64_t begin = 0; begin < count && !stop.number(); begin += batch_size_) {
    const data::Batch batch = samples.slice(begin, std::min(begin + batch_size_, count));
    const auto [logits, labels] = compute(batch);
    loss += item(cross_entropy(logits, labels, {.reduction = Reduction::sum}));
    const std::vector<int64_t> guesses = to_vector<int64_t>(argmax(logits, {-1}));
    for (size_t i = 0; i < guesses.size(); ++i)
      ++found.counts[static_cast<size_t>(batch.labels[i] * found.classes + guesses[i])];
  }
  bert_->train(true);
  if (stop.number()) return {};
  confusion_ = std::move(found);
  return {{"eval_loss", loss / static_cast<double>(count)},
          {"eval_accuracy", confusion_.accuracy()},
          {"eval_macro_f1", confusion_.macro_f1()}};
}

std::vector<std::string> TextClassifyTask::evaluation_names() const {
  return {"eval_loss", "eval_accuracy", "eval_macro_f1"};
}

void TextClassifyTask::save(CheckpointWriter& writer) {
  write_model(writer, *bert_);
  write_tokenizer(writer, data_.tokenizer, bert_->config().max_position_embeddings);
}

models::LoadReport TextClassifyTask::load(const std::string& directory) {
  models::require_same(directory, bert_->config(), Where());
  return models::load_weights(*bert_, directory);
}

}  // namespace cinta::train
