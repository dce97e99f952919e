// Training a BERT as a masked language model.
#pragma once
#include "cinta/data/batches.h"
#include "cinta/models/bert/bert.h"
#include "cinta/train/task.h"

namespace cinta::train {

/// Text ready for training: the tokenizer and both parts of the corpus as sequences.
struct MaskedCorpus {
  data::WordPiece tokenizer;
  data::Sequences train, held_out;
};

/// Reads text files under `path`, splits them by file, learns a vocabulary of `vocab_size` on the training part (or
/// uses `vocabulary` when given) and cuts sequences of `length` tokens. `say` is told what was found.
MaskedCorpus prepare_corpus(const std::string& path, int64_t vocab_size, int64_t length, uint64_t seed,
                            const Callback<void(const std::string&)>& say, Where where = Where::current());

class MaskedTask final : public Task {
 public:
  MaskedTask(const MaskedCorpus& corpus, models::BertConfig config, int64_t batch_size, uint64_t seed,
             Device device = cpu, Where where = Where::current());
  models::BertForMaskedLM& model() override { return *bert_; }
  Random* random() override { return &bert_->random(); }
  const data::BatchSource& batches() const override { return *batches_; }
  int64_t samples_per_batch() const override { return batch_size_; }
  Forward forward(const data::Batch& batch) override;
  /// eval_loss and eval_masked_accuracy on held-out sequences under fixed masks.
  MetricFields evaluate() override;
  std::vector<std::string> evaluation_names() const override { return {"eval_loss", "eval_masked_accuracy"}; }
  void save(CheckpointWriter& writer) override;
  void load(const std::string& directory) override;
  int64_t progress_items(const data::Batch& batch) const override;
  const char* progress_unit() const override { return "tokens"; }
  const char* accuracy_name() const override { return "masked_accuracy"; }

 private:
  const MaskedCorpus& corpus_;
  int64_t batch_size_;
  Device device_;
  data::Masker masker_;
  std::unique_ptr<data::MaskedBatches> batches_, held_out_;
  std::unique_ptr<models::BertForMaskedLM> bert_;
};

}  // namespace cinta::train
