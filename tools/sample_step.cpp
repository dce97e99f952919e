// Weights and batches are pure functions of seed 0.
#include "tools/sample_step.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <new>
#include <stdexcept>

#include "cinta/core/random.h"
#include "cinta/data/packing.h"
#include "cinta/models/character_transformer.h"
#include "cinta/models/mlp.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/shape.h"
#include "cinta/train/classifier.h"
#include "cinta/train/token_batch.h"
#include "tools/settings_file.h"
#include "tools/widths.h"

namespace cinta::tools {
namespace {

/// Room on the host for an input of a step.
template <class T>
std::vector<T> room_for(const char* name, const Shape& shape) {
  empty(shape, dtype_of<T>(), meta);  // refuses what cannot be counted
  try {
    return std::vector<T>(static_cast<size_t>(shape.numel()));
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  throw OutOfMemory(join("[sample] there is no room for ", shape, " numbers of '", name, "'"));
}

/// Makes the inputs of a step.
struct Source {
  Device device;
  const SampleInputs& inputs;

  Tensor numbers(const char* name, const Shape& shape) const {
    if (!inputs.numbers) return empty(shape, Dtype::f32, device);
    if (inputs.zeros) return zeros(shape, Dtype::f32, device);
    std::vector<float> out = room_for<float>(name, shape);
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(random_normal(0, stream_id(name), 0, i));
    return from_values(out, shape, device);
  }
  static std::vector<int64_t> words(const char* name, int64_t bound, const Shape& shape) {
    std::vector<int64_t> out = room_for<int64_t>(name, shape);
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<int64_t>(random_word(0, stream_id(name), 0, i) % static_cast<uint32_t>(bound));
    return out;
  }
  Tensor indices(const char* name, int64_t bound, const Shape& shape) const {
    if (inputs.zeros) return zeros(shape, Dtype::i64, device);
    return from_values(words(name, bound, shape), shape, device);
  }
  /// The masked tokens as rows of the flattened batch, spread evenly over each sequence.
  Tensor masked_rows(const SampleTokens& tokens) const {
    const int64_t count = tokens.batch * tokens.masked;
    if (inputs.zeros) return zeros({count}, Dtype::i64, device);
    std::vector<int64_t> rows;
    for (int64_t sample = 0; sample < tokens.batch; ++sample)
      for (int64_t i = 0; i < tokens.masked; ++i)
        rows.push_back(sample * tokens.sequence + i * tokens.sequence / tokens.masked);
    return from_values(rows, {count}, device);
  }
};

/// What a BERT reads, and the rows of what it guesses.
struct Sequences {
  models::TokenBatch batch;
  Tensor rows = {};
  int64_t tokens = 0;
  SeenKeys seen = {};
};

Sequences whole(const Source& source, const SampleTokens& tokens, int64_t vocabulary) {
  const Shape all{tokens.batch, tokens.sequence};
  Sequences out{.batch = {.ids = source.indices("ids", vocabulary, all)}, .tokens = all.numel()};
  if (tokens.masked) out.rows = source.masked_rows(tokens);
  return out;
}

/// `reads_first`: a head reads the first token of each sequence, besides the masked ones.
Sequences ragged(const Source& source, const SampleTokens& tokens, int64_t vocabulary, bool reads_first) {
  require(tokens.sequence > 2, "sample", Where(), "ragged sequences of at least 3 tokens, given ", tokens.sequence);
  data::Batch batch;
  batch.ids = Source::words("ids", vocabulary, {tokens.batch, tokens.sequence});
  double pairs = 0, read = 0, pairs_of_read = 0;  // pairs of a query and a key
  for (int64_t more : Source::words("lengths", tokens.sequence - 2, {tokens.batch})) {
    const int64_t length = 2 + more, before = static_cast<int64_t>(batch.lengths.size()) * tokens.sequence;
    batch.lengths.push_back(static_cast<int32_t>(length));
    const int64_t masked = tokens.masked ? std::max<int64_t>(1, tokens.masked * length / tokens.sequence) : 0;
    for (int64_t i = 0; i < masked; ++i) batch.rows.push_back(before + i * length / masked);
    pairs += static_cast<double>(length * length);
    read += static_cast<double>(masked + reads_first);
    pairs_of_read += static_cast<double>((masked + reads_first) * length);
  }
  const data::Batch packed = data::packed(batch);
  Sequences out{.batch = train::token_batch(packed, source.device), .tokens = packed.offsets.back()};
  if (tokens.masked) out.rows = from_values(packed.rows, {static_cast<int64_t>(packed.rows.size())}, source.device);
  const auto all = static_cast<double>(packed.ids.size());
  out.seen = {pairs / (all * all), pairs_of_read / (read * all)};
  return out;
}

/// A BERT of class Model whose loss is that of `loss(model)`.
template <class Model, class Loss>
SampleStep step_of(const models::BertConfig& config, Device device, autograd::CheckpointPolicy checkpointing,
                   const Sequences& sequences, Loss loss) {
  auto bert = std::make_unique<Model>(config, 0, device);
  bert->set_checkpoint_policy(std::move(checkpointing));
  auto run = [&model = *bert, loss] { return loss(model); };
  return {.model = std::move(bert), .loss = run, .tokens = sequences.tokens, .seen = sequences.seen};
}

SampleStep mlp_step(const std::vector<int64_t>& sizes, int64_t batch, const Source& source) {
  const Tensor x = source.numbers("x", {batch, sizes.front()}),
               labels = source.indices("labels", sizes.back(), {batch});
  source.inputs.ready();
  auto mlp = std::make_unique<models::Mlp>(sizes, 0, Activation::relu, source.device);
  auto loss = [&model = *mlp, x, labels] { return cross_entropy(model(x), labels); };
  return {.model = std::move(mlp), .loss = loss};
}

}  // namespace

SampleModel sample_model(const std::string& text, int64_t vocabulary, int64_t sequence) {
  if (std::filesystem::is_directory(text)) {
    const std::string name = models::model_name(text);
    if (name == "mlp") return {.architecture = name, .sizes = train::read_classifier(text).sizes};
    return {.architecture = name, .config = models::read_config(text)};
  }
  if (text == "mlp") return {.architecture = text, .sizes = {784, 512, 512, 10}};
  if (!text.empty() && text.find_first_not_of("0123456789,") == text.npos)
    return {.architecture = "mlp", .sizes = widths_of(text)};
  require<FileError>(text.find('/') == text.npos, "model", Where(), text, ": there is no such directory");
  models::BertConfig config;
  try {
    config = models::BertConfig::named(text);
  } catch (const ValueError&) {
    throw ValueError(located("model", join("a model is ", sample_model_help, "; given '", text, "'"), Where()));
  }
  config.vocab_size = vocabulary;
  config.max_position_embeddings = std::max(config.max_position_embeddings, sequence);
  return {.architecture = "BertForMaskedLM", .config = config, .named = true};
}

int64_t sample_length(const SampleModel& model, const CLI::App& command, int64_t length) {
  const std::string because = "on " + model.architecture + ", whose sizes are its own";
  require_effect(command, "vocab_size", model.named, because);
  require_effect(command, "sequence_length", model.architecture != "mlp", because);
  return command.count("--sequence_length") ? length : std::min(length, model.config.max_position_embeddings);
}

SampleStep sample_step(const SampleModel& model, SampleTokens tokens, Device device, const std::string& checkpointing,
                       const SampleInputs& inputs) {
  const std::string& name = model.architecture;
  const models::BertConfig& config = model.config;
  const Source source{device, inputs};
  const autograd::CheckpointPolicy policy = autograd::parse_checkpoint_policy(checkpointing);
  const bool pairs = name == "BertForPreTraining", masks = pairs || name == "BertForMaskedLM";
  require(masks || tokens.masked == 0, "sample", Where(), "a ", name, " guesses no masked tokens, given ",
          tokens.masked);
  if (name == "mlp") {
    require(policy.kind == autograd::CheckpointPolicy::none, "sample", Where(),
            "an MLP has no layers to checkpoint, given --gradient_checkpointing ", checkpointing);
    return mlp_step(model.sizes, tokens.batch, source);
  }
  require(tokens.sequence <= config.max_position_embeddings, "sample", Where(), "the model has positions for ",
          config.max_position_embeddings, " tokens, given sequences of ", tokens.sequence);
  if (masks && !tokens.masked)
    tokens.masked = std::max<int64_t>(1, std::llround(0.15 * static_cast<double>(tokens.sequence)));
  require(tokens.masked <= tokens.sequence, "sample", Where(), "masked tokens fit a sequence of ", tokens.sequence,
          ", given ", tokens.masked);
  require(!tokens.ragged || name != "CharacterTransformer", "sample", Where(), "a ", name,
          " takes no ragged sequences");
  const auto labels = [&](int64_t bound, const Shape& shape) { return source.indices("labels", bound, shape); };
  const Sequences all = tokens.ragged ? ragged(source, tokens, config.vocab_size, name != "BertForMaskedLM")
                                      : whole(source, tokens, config.vocab_size);
  const models::TokenBatch& batch = all.batch;
  if (name == "BertForSequenceClassification") {
    const Tensor classes = labels(config.num_labels, {tokens.batch});
    inputs.ready();
    return step_of<models::BertForSequenceClassification>(
        config, device, policy, all, [=](const auto& bert) { return cross_entropy(bert(batch), classes); });
  }
  if (name == "CharacterTransformer") {
    const Tensor next = labels(config.vocab_size, batch.ids.shape());
    inputs.ready();
    return step_of<models::CharacterTransformer>(config, device, policy, all, [=](const auto& characters) {
      return cross_entropy(characters(batch.ids), next);
    });
  }
  require(masks, "sample", Where(), "a step is known of an mlp, a BertForMaskedLM, a BertForPreTraining, a ",
          "BertForSequenceClassification and a CharacterTransformer, not of a ", name);
  const Tensor rows = all.rows, words = labels(config.vocab_size, rows.shape());
  if (!pairs) {
    inputs.ready();
    return step_of<models::BertForMaskedLM>(config, device, policy, all,
                                            [=](const auto& bert) { return cross_entropy(bert(batch, rows), words); });
  }
  const Tensor kinds = source.indices("kinds", 2, {tokens.batch});
  inputs.ready();
  return step_of<models::BertForPreTraining>(config, device, policy, all, [=](const auto& bert) {
    const auto [masked, next] = bert(batch, rows);
    return cross_entropy(masked, words) + cross_entropy(next, kinds);
  });
}

}  // namespace cinta::tools
