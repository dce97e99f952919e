// The character model's data, forward, evaluation, files, and what it writes.
#include "cinta/train/character_task.h"

#include <algorithm>
#include <cmath>

#include "cinta/autograd/mode.h"
#include "cinta/core/random.h"
#include "cinta/data/file.h"
#include "cinta/models/model_file.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/shape.h"
#include "cinta/ops/softmax.h"
#include "cinta/train/model_files.h"

namespace cinta::train {

CharacterCorpus split_text(std::string_view text, Where where) {
  data::Characters characters(text, where);
  std::vector<int32_t> ids = characters.encode(text, where);
  const auto cut = ids.begin() + static_cast<int64_t>(ids.size() - ids.size() / 10);
  return {std::move(characters), {ids.begin(), cut}, {cut, ids.end()}};
}

double unigram_loss(const CharacterCorpus& corpus) {
  std::vector<double> seen(static_cast<size_t>(corpus.characters.size()), 1);
  for (int32_t id : corpus.train) ++seen[static_cast<size_t>(id)];
  const double total = static_cast<double>(seen.size() + corpus.train.size());
  double loss = 0;
  for (int32_t id : corpus.held_out) loss -= std::log(seen[static_cast<size_t>(id)] / total);
  return loss / static_cast<double>(corpus.held_out.size());
}

CharacterTask::CharacterTask(const CharacterCorpus& corpus, models::BertConfig config, int64_t batch_size,
                             uint64_t seed, Device device, Where where)
    : corpus_(corpus), batch_size_(batch_size), length_(config.max_position_embeddings), device_(device) {
  config.vocab_size = corpus.characters.size();
  batches_ = std::make_shared<data::WindowBatches>(corpus.train, length_, batch_size, seed, where);
  require(static_cast<int64_t>(corpus.held_out.size()) > length_, "characters", where, "the held-out ",
          corpus.held_out.size(), " characters are no sequence of ", length_, " and the character after it");
  model_ = std::make_shared<models::CharacterTransformer>(config, seed, device, where);
}

Forward CharacterTask::forward(const data::Batch& batch) {
  const Shape shape{static_cast<int64_t>(batch.lengths.size()), length_};
  const Tensor labels = from_values(batch.labels, shape, device_);
  const Tensor logits = (*model_)(from_values(batch.ids, shape, device_));
  return {cross_entropy(logits, labels, {.reduction = Reduction::sum}), count_correct(logits, labels)};
}

MetricFields CharacterTask::evaluate_until(StopFlag stop) {
  autograd::NoGrad off;
  model_->train(false);
  const std::vector<int32_t>& text = corpus_.held_out;
  const int64_t sequences = (static_cast<int64_t>(text.size()) - 1) / length_;
  double loss = 0, correct = 0;
  for (int64_t first = 0; first < sequences && !stop.number(); first += batch_size_) {
    data::Batch batch;
    const int64_t count = std::min(batch_size_, sequences - first);
    const auto begin = text.begin() + first * length_, end = begin + count * length_;
    batch.ids.assign(begin, end);
    batch.labels.assign(begin + 1, end + 1);
    batch.lengths.assign(static_cast<size_t>(count), static_cast<int32_t>(length_));
    const Forward part = forward(batch);
    loss += item(part.loss_sum);
    correct += item(part.correct);
  }
  model_->train(true);
  if (stop.number()) return {};
  const double items = static_cast<double>(sequences * length_);
  return {{"eval_loss", loss / items}, {"eval_accuracy", correct / items}};
}

std::vector<std::string> CharacterTask::evaluation_names() const { return {"eval_loss", "eval_accuracy"}; }

void CharacterTask::save(CheckpointWriter& writer) {
  write_model(writer, *model_);
  writer.add("characters.txt").write_text(corpus_.characters.bytes());
}

models::LoadReport CharacterTask::load(const std::string& directory) {
  require<FileError>(data::read_file(directory + "/characters.txt") == corpus_.characters.bytes(), "load", Where(),
                     directory, "/characters.txt holds other characters than the text");
  models::require_same(directory, model_->config(), Where());
  return models::load_weights(*model_, directory);
}

std::string continue_text(const models::CharacterTransformer& model, const data::Characters& characters,
                          std::string text, int64_t count, uint64_t seed, Where where) {
  require(!text.empty(), "continue", where, "a text to go on from");
  autograd::NoGrad off;
  const size_t window = static_cast<size_t>(model.config().max_position_embeddings);
  const Device device = model.named_tensors().front().tensor.device();
  for (int64_t i = 0; i < count; ++i) {
    const std::string_view seen = std::string_view(text).substr(text.size() - std::min(text.size(), window));
    const std::vector<int32_t> ids = characters.encode(seen, where);
    const int64_t length = static_cast<int64_t>(ids.size());
    const Tensor logits = model(from_values(std::vector<int64_t>(ids.begin(), ids.end()), {1, length}, device), where);
    const std::vector<float> chances = to_vector<float>(softmax(slice(logits, 1, length - 1, length)));
    double left = to_uniform(random_word(seed, stream_id("continue"), 0, static_cast<uint64_t>(i)));
    int32_t drawn = 0;
    while (drawn + 1 < characters.size() && left >= chances[static_cast<size_t>(drawn)])
      left -= chances[static_cast<size_t>(drawn++)];
    text += characters.decode(std::span(&drawn, 1), where);
  }
  return text;
}

}  // namespace cinta::train
