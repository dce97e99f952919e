// The forward with both heads, and its scores.
#include "cinta/train/pretraining_task.h"

#include <algorithm>

#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"

namespace cinta::train {

PreTrainingTask::PreTrainingTask(const data::MaskedCorpus& corpus, models::BertConfig config, int64_t length,
                                 int64_t batch_size, uint64_t seed, Device device, Where where)
    : LanguageTask(corpus, config, seed, batch_size, device, where),
      train_(corpus.train, corpus.tokenizer.vocabulary(), seed, "the text to train on", where),
      test_(corpus.held_out, corpus.tokenizer.vocabulary(), seed, "the text to evaluate on", where),
      pair_weight_(static_cast<double>(masker_.capacity(length))) {
  batches_ =
      std::make_shared<data::PairBatches>(train_, length, masker_, batch_size, seed, data::Walk::shuffled, where);
  held_out_ =
      std::make_shared<data::PairBatches>(test_, length, masker_, batch_size, seed, data::Walk::in_order, where);
  bert_ = std::make_shared<models::BertForPreTraining>(config, seed, device, where);
}

PreTrainingTask::Parts PreTrainingTask::compute(const data::Batch& batch) {
  const auto [tokens, rows, labels] = inputs(batch);
  const Tensor kinds = from_values(batch.kinds, {static_cast<int64_t>(batch.kinds.size())}, device_);
  const auto [masked, next] = (*bert_)(tokens, rows);
  return {cross_entropy(masked, labels, {.reduction = Reduction::sum}), count_correct(masked, labels),
          cross_entropy(next, kinds, {.reduction = Reduction::sum}), count_correct(next, kinds)};
}

Forward PreTrainingTask::forward(const data::Batch& batch) {
  const Parts parts = compute(batch);
  return {parts.masked_loss + parts.next_loss * pair_weight_, parts.masked_correct};
}

std::vector<LanguageTask::Score> PreTrainingTask::scores(const data::Batch& batch) {
  const Parts parts = compute(batch);
  const auto pairs = std::ranges::count_if(batch.kinds, [](int64_t kind) { return kind != data::ignored_label; });
  return {{"eval_masked_loss", parts.masked_loss, batch.items},
          {"eval_masked_accuracy", parts.masked_correct, batch.items},
          {"eval_next_sentence_loss", parts.next_loss, pairs},
          {"eval_next_sentence_accuracy", parts.next_correct, pairs}};
}

std::vector<std::string> PreTrainingTask::evaluation_names() const {
  return {"eval_loss", "eval_masked_loss", "eval_masked_accuracy", "eval_next_sentence_loss",
          "eval_next_sentence_accuracy"};
}

MetricFields PreTrainingTask::evaluate_until(StopFlag stop) {
  MetricFields out = LanguageTask::evaluate_until(stop);
  if (out.empty()) return out;
  const double loss = number(out, "eval_masked_loss") + number(out, "eval_next_sentence_loss");
  out.insert(out.begin(), {"eval_loss", loss});
  return out;
}

}  // namespace cinta::train
