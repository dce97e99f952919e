// Training a BERT as its authors did (Devlin et al. 2018, section 3.1): masked tokens and next sentences together.
#pragma once
#include "cinta/data/sentence_pairs.h"
#include "cinta/train/language_task.h"

namespace cinta::train {

class PreTrainingTask final : public LanguageTask {
 public:
  /// Samples are pairs of `length` tokens; the corpus's sequences have data::segment_length(length). `corpus` must
  /// outlive this. Throws ValueError for a corpus without pairs.
  PreTrainingTask(const data::MaskedCorpus& corpus, models::BertConfig config, int64_t length, int64_t batch_size,
                  uint64_t seed, Device device = cpu, Where where = Where::current());
  models::BertForPreTraining& model() override { return *bert_; }
  int64_t count() const { return train_.count(); }  ///< pairs to train on
  /// A pair's next-sentence loss weighs as much as all its masked tokens: with full pairs the step's loss is the mean
  /// over masked tokens plus the mean over pairs, and however a step is accumulated, it is the same number.
  Forward forward(const data::Batch& batch) override;
  /// eval_loss, the sum of eval_masked_loss and eval_next_sentence_loss (nats), and both accuracies.
  MetricFields evaluate_until(StopFlag stop) override;
  std::vector<std::string> evaluation_names() const override;

 private:
  struct Parts {
    Tensor masked_loss, masked_correct, next_loss, next_correct;
  };
  Parts compute(const data::Batch& batch);
  std::vector<Score> scores(const data::Batch& batch) override;

  data::SentencePairs train_, test_;
  double pair_weight_;
  std::shared_ptr<models::BertForPreTraining> bert_;
};

}  // namespace cinta::train
