// What pre-training tasks on a masked corpus share: batches of masked tokens, scores on the held-out part, files.
#pragma once
#include "cinta/data/batches.h"
#include "cinta/data/masked_corpus.h"
#include "cinta/models/bert/bert.h"
#include "cinta/train/task.h"

namespace cinta::train {

class LanguageTask : public Task {
 public:
  models::BertBase& model() override = 0;
  /// Lay the samples of a batch end to end and compute on no padding (data/packing.h). Without dropout the losses stay
  /// what they are; with it, other elements are dropped.
  void compute_without_padding(bool on = true) { padding_free_ = on; }
  Random* random() override { return &model().random(); }
  const data::BatchSource& batches() const override { return *batches_; }
  int64_t samples_per_batch() const override { return batch_size_; }
  bool packs_samples() const override { return padding_free_; }
  /// The scores of held-out sequences under fixed masks.
  MetricFields evaluate_until(StopFlag stop) override;
  void save(CheckpointWriter& writer) override;
  models::LoadReport load(const std::string& directory) override;
  int64_t progress_items(const data::Batch& batch) const override;
  const char* progress_unit() const override { return "tokens"; }
  const char* accuracy_name() const override { return "masked_accuracy"; }

 protected:
  /// Throws ValueError where the corpus has more tokens than `config`, or one of its parts none to guess.
  LanguageTask(const data::MaskedCorpus& corpus, const models::BertConfig& config, uint64_t seed, int64_t batch_size,
               Device device, Where where);

  /// A number of an evaluation: the mean of what each of `items` adds to `sum`.
  struct Score {
    const char* name;
    Tensor sum;
    int64_t items;
  };
  /// The scores of one batch, the same names in every one.
  virtual std::vector<Score> scores(const data::Batch& batch) = 0;

  struct Inputs {
    models::TokenBatch tokens;
    Tensor rows, labels;
  };
  Inputs inputs(const data::Batch& batch) const;

  const data::MaskedCorpus& corpus_;
  Device device_;
  data::Masker masker_;
  int64_t batch_size_;
  bool padding_free_ = false;
  std::shared_ptr<data::MaskedBatches> batches_, held_out_;
};

}  // namespace cinta::train
