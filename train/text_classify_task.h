// Training a BERT to classify texts or pairs of texts.
#pragma once
#include "cinta/data/labelled_text.h"
#include "cinta/models/bert/bert.h"
#include "cinta/train/task.h"

namespace cinta::train {

/// How often a sample of class row() was taken for class column().
struct Confusion {
  int64_t classes = 0;
  std::vector<int64_t> counts;  ///< [classes, classes], true class by row
  double accuracy() const;
  /// Mean over the classes of the harmonic mean of precision and recall; a class never met nor guessed does not count.
  double macro_f1() const;
};

/// Throws ValueError, naming `name`, where `text` holds pairs and the model tells no second text from a first.
void require_segments(const data::LabelledText& text, const models::BertConfig& config, const std::string& name,
                      Where where = Where::current());

struct TextClassifyData {
  data::WordPiece tokenizer;
  data::ClassifiedSequences train, test;
};

class TextClassifyTask final : public Task {
 public:
  /// `config.label_names` are the classes. `data` must outlive this. `balance` is that of the batches to train on.
  /// Throws ValueError where `data` has more tokens than `config`.
  TextClassifyTask(const TextClassifyData& data, models::BertConfig config, int64_t batch_size, uint64_t seed,
                   Device device = cpu, Where where = Where::current(), data::Balance balance = data::Balance::samples);
  models::BertForSequenceClassification& model() override { return *bert_; }
  Random* random() override { return &bert_->random(); }
  /// As LanguageTask's.
  void compute_without_padding(bool on = true) { padding_free_ = on; }
  const data::BatchSource& batches() const override { return *batches_; }
  int64_t samples_per_batch() const override { return batch_size_; }
  bool packs_samples() const override { return padding_free_; }
  Forward forward(const data::Batch& batch) override;
  /// eval_loss, eval_accuracy and eval_macro_f1 on the test samples.
  MetricFields evaluate_until(StopFlag stop) override;
  const Confusion& confusion() const { return confusion_; }  ///< of the last evaluation
  std::vector<std::string> evaluation_names() const override;
  void save(CheckpointWriter& writer) override;
  models::LoadReport load(const std::string& directory) override;
  int64_t progress_items(const data::Batch& batch) const override { return static_cast<int64_t>(batch.labels.size()); }
  const char* progress_unit() const override { return "samples"; }
  const char* accuracy_name() const override { return "accuracy"; }

 private:
  /// Logits and labels of a batch.
  std::pair<Tensor, Tensor> compute(const data::Batch& batch);
  const TextClassifyData& data_;
  int64_t batch_size_;
  Device device_;
  bool padding_free_ = false;
  Confusion confusion_;
  std::shared_ptr<data::ClassifiedBatches> batches_;
  std::shared_ptr<models::BertForSequenceClassification> bert_;
};

}  // namespace cinta::train
