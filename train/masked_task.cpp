// The masked language model's forward and scores.
#include "cinta/train/masked_task.h"

#include "cinta/ops/loss.h"

namespace cinta::train {

MaskedTask::MaskedTask(const data::MaskedCorpus& corpus, models::BertConfig config, int64_t batch_size, uint64_t seed,
                       Device device, Where where, data::Balance balance)
    : LanguageTask(corpus, config, seed, batch_size, device, where) {
  batches_ = std::make_shared<data::MaskedBatches>(corpus.train, masker_, batch_size, seed, data::Walk::shuffled, where,
                                                   balance);
  held_out_ =
      std::make_shared<data::MaskedBatches>(corpus.held_out, masker_, batch_size, seed, data::Walk::in_order, where);
  bert_ = std::make_shared<models::BertForMaskedLM>(config, seed, device, where);
}

Forward MaskedTask::forward(const data::Batch& batch) {
  const auto [tokens, rows, labels] = inputs(batch);
  const Tensor logits = (*bert_)(tokens, rows);
  return {cross_entropy(logits, labels, {.reduction = Reduction::sum}), count_correct(logits, labels)};
}

std::vector<std::string> MaskedTask::evaluation_names() const { return {"eval_loss", "eval_masked_accuracy"}; }

std::vector<LanguageTask::Score> MaskedTask::scores(const data::Batch& batch) {
  const Forward part = forward(batch);
  return {{"eval_loss", part.loss_sum, batch.items}, {"eval_masked_accuracy", part.correct, batch.items}};
}

}  // namespace cinta::train
