// Training a BERT as a masked language model.
#pragma once
#include "cinta/train/language_task.h"

namespace cinta::train {

class MaskedTask final : public LanguageTask {
 public:
  /// `corpus` must outlive this. `balance` is that of the batches to train on.
  MaskedTask(const data::MaskedCorpus& corpus, models::BertConfig config, int64_t batch_size, uint64_t seed,
             Device device = cpu, Where where = Where::current(), data::Balance balance = data::Balance::samples);
  models::BertForMaskedLM& model() override { return *bert_; }
  Forward forward(const data::Batch& batch) override;
  /// eval_loss (nats) and eval_masked_accuracy.
  std::vector<std::string> evaluation_names() const override;

 private:
  std::vector<Score> scores(const data::Batch& batch) override;
  std::shared_ptr<models::BertForMaskedLM> bert_;
};

}  // namespace cinta::train
