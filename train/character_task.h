// Training a small causal Transformer to predict the next character of a text.
#pragma once
#include "cinta/data/characters.h"
#include "cinta/models/character_transformer.h"
#include "cinta/train/task.h"

namespace cinta::train {

/// A text as numbers: its first nine tenths to train on, the rest held out.
struct CharacterCorpus {
  data::Characters characters;
  std::vector<int32_t> train, held_out;
};

/// Throws ValueError for an empty text.
CharacterCorpus split_text(std::string_view text, Where where = Where::current());

/// Mean negative log-likelihood in nats of the held-out characters under their frequencies in the training text (each
/// counted once more than it occurs): what a model that reads no context reaches.
double unigram_loss(const CharacterCorpus& corpus);

class CharacterTask final : public Task {
 public:
  /// Sequences have the configuration's max_position_embeddings characters; its vocab_size is the corpus's. `corpus`
  /// must outlive this. Throws ValueError when either part of the text is shorter than two sequences.
  CharacterTask(const CharacterCorpus& corpus, models::BertConfig config, int64_t batch_size, uint64_t seed,
                Device device = cpu, Where where = Where::current());
  models::CharacterTransformer& model() override { return *model_; }
  Random* random() override { return &model_->random(); }
  const data::BatchSource& batches() const override { return *batches_; }
  int64_t samples_per_batch() const override { return batch_size_; }
  Forward forward(const data::Batch& batch) override;
  /// eval_loss (nats) and eval_accuracy of the next character over the held-out text, cut into sequences.
  MetricFields evaluate_until(StopFlag stop) override;
  std::vector<std::string> evaluation_names() const override;
  void save(CheckpointWriter& writer) override;
  models::LoadReport load(const std::string& directory) override;
  int64_t progress_items(const data::Batch& batch) const override { return static_cast<int64_t>(batch.labels.size()); }
  const char* progress_unit() const override { return "characters"; }
  const char* accuracy_name() const override { return "accuracy"; }

 private:
  const CharacterCorpus& corpus_;
  int64_t batch_size_, length_;
  Device device_;
  std::shared_ptr<data::WindowBatches> batches_;
  std::shared_ptr<models::CharacterTransformer> model_;
};

/// `text` and `count` characters more, each drawn from what the model predicts: a pure function of (model, text, seed).
std::string continue_text(const models::CharacterTransformer& model, const data::Characters& characters,
                          std::string text, int64_t count, uint64_t seed, Where where = Where::current());

}  // namespace cinta::train
