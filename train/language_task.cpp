// Batches to the device, the walk through the held-out part, the model's files.
#include "cinta/train/language_task.h"

#include <algorithm>

#include "cinta/autograd/mode.h"
#include "cinta/data/packing.h"
#include "cinta/models/model_file.h"
#include "cinta/train/model_files.h"
#include "cinta/train/token_batch.h"

namespace cinta::train {
namespace {

/// Throws ValueError where no token of a text could be guessed.
void require_tokens(const data::Sequences& text, const data::Vocabulary& vocabulary, const char* part, Where where) {
  const auto ordinary = [&](int32_t id) { return !vocabulary.is_special(id); };
  require(std::ranges::any_of(text.ids, ordinary), "language_task", where, "the text to ", part,
          " has no token to guess: the vocabulary of ", vocabulary.size(), " tokens knows none of its words");
}

}  // namespace

LanguageTask::LanguageTask(const data::MaskedCorpus& corpus, const models::BertConfig& config, uint64_t seed,
                           int64_t batch_size, Device device, Where where)
    : corpus_(corpus),
      device_(device),
      masker_(corpus.tokenizer.vocabulary(), seed, {}, where),
      batch_size_(batch_size) {
  const int64_t tokens = corpus.tokenizer.vocabulary().size();
  require(tokens <= config.vocab_size, "language_task", where, "the vocabulary has ", tokens, " tokens, vocab_size is ",
          config.vocab_size);
  require_tokens(corpus.held_out, corpus.tokenizer.vocabulary(), "evaluate on", where);
  require_tokens(corpus.train, corpus.tokenizer.vocabulary(), "train on", where);
}

LanguageTask::Inputs LanguageTask::inputs(const data::Batch& batch) const {
  if (padding_free_ && batch.offsets.empty()) return inputs(data::packed(batch));
  const auto rows = static_cast<int64_t>(batch.rows.size());
  return {token_batch(batch, device_), from_values(batch.rows, {rows}, device_),
          from_values(batch.labels, {rows}, device_)};
}

MetricFields LanguageTask::evaluate_until(StopFlag stop) {
  const autograd::NoGrad off;
  model().train(false);
  std::vector<const char*> names;
  std::vector<double> sums;
  std::vector<int64_t> items;
  int64_t masked = 0;
  for (int64_t step = 0; step < held_out_->steps_per_epoch() && !stop.number(); ++step) {
    const data::Batch batch = held_out_->batch(step);
    masked += batch.items;
    const std::vector<Score> found = scores(batch);
    names.resize(found.size());
    sums.resize(found.size());
    items.resize(found.size());
    for (size_t i = 0; i < found.size(); ++i) {
      names[i] = found[i].name;
      sums[i] += item(found[i].sum);
      items[i] += found[i].items;
    }
  }
  model().train(true);
  if (stop.number()) return {};
  MetricFields out;
  for (size_t i = 0; i < names.size(); ++i)
    out.emplace_back(names[i], sums[i] / static_cast<double>(items[i]));  // of nothing: NaN, which is nobody's best
  out.emplace_back("eval_items", masked);
  return out;
}

void LanguageTask::save(CheckpointWriter& writer) {
  write_model(writer, model());
  write_tokenizer(writer, corpus_.tokenizer, model().config().max_position_embeddings);
}

models::LoadReport LanguageTask::load(const std::string& directory) {
  models::require_same(directory, model().config(), Where());
  const data::Vocabulary vocabulary = data::Vocabulary::load(directory + "/vocab.txt", Where());
  const int64_t tokens = corpus_.tokenizer.vocabulary().size();
  require<FileError>(vocabulary.size() == tokens, "load", Where(), directory, "/vocab.txt has ", vocabulary.size(),
                     " tokens, the text gives ", tokens);
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    const std::string &there = vocabulary.token(id), &here = corpus_.tokenizer.vocabulary().token(id);
    require<FileError>(there == here, "load", Where(), directory, "/vocab.txt: line ", id + 1, ": found \"", there,
                       "\", but the text gives the vocabulary \"", here, "\" there");
  }
  return models::load_weights(model(), directory);
}

int64_t LanguageTask::progress_items(const data::Batch& batch) const {
  int64_t tokens = 0;
  for (int32_t length : batch.lengths) tokens += length;
  return tokens;
}

}  // namespace cinta::train
