// Weights and batches are pure functions of seed 0.
#include "tools/sample_step.h"

#include <algorithm>
#include <cmath>

#include "cinta/core/random.h"
#include "cinta/models/mlp.h"
#include "cinta/ops/loss.h"

namespace cinta::tools {
namespace {

Tensor random_indices(const char* name, int64_t bound, const Shape& shape, Device device) {
  std::vector<int64_t> out(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<int64_t>(random_word(0, stream_id(name), 0, i) % static_cast<uint32_t>(bound));
  return from_values(out, shape, device);
}

/// The masked tokens as rows of the flattened batch, spread evenly over each sequence.
std::vector<int64_t> masked_rows(const SampleTokens& tokens, int64_t each) {
  std::vector<int64_t> rows;
  for (int64_t sample = 0; sample < tokens.batch; ++sample)
    for (int64_t i = 0; i < each; ++i) rows.push_back(sample * tokens.sequence + i * tokens.sequence / each);
  return rows;
}

}  // namespace

SampleStep sample_mlp(const std::vector<int64_t>& sizes, int64_t batch, Device device) {
  auto mlp = std::make_unique<models::Mlp>(sizes, 0, Activation::relu, device);
  std::vector<float> values(static_cast<size_t>(batch * sizes.front()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random_normal(0, stream_id("x"), 0, i));
  const Tensor x = from_values(values, {batch, sizes.front()}, device),
               labels = random_indices("labels", sizes.back(), {batch}, device);
  auto loss = [&model = *mlp, x, labels] { return cross_entropy(model(x), labels); };
  return {.model = std::move(mlp), .loss = loss};
}

SampleStep sample_bert(const models::BertConfig& config, SampleTokens tokens, Device device,
                       autograd::CheckpointPolicy checkpointing) {
  require(tokens.sequence <= config.max_position_embeddings, "bert", Where(), "the model has positions for ",
          config.max_position_embeddings, " tokens, given sequences of ", tokens.sequence);
  const int64_t each =
      tokens.masked ? tokens.masked : std::max<int64_t>(1, std::llround(0.15 * static_cast<double>(tokens.sequence)));
  require(each <= tokens.sequence, "bert", Where(), "masked tokens fit a sequence of ", tokens.sequence, ", given ",
          each);
  auto bert = std::make_unique<models::BertForMaskedLM>(config, 0, device);
  bert->set_checkpoint_policy(std::move(checkpointing));
  const Shape items{tokens.batch * each};
  const Tensor ids = random_indices("ids", config.vocab_size, {tokens.batch, tokens.sequence}, device),
               masked = from_values(masked_rows(tokens, each), items, device),
               labels = random_indices("labels", config.vocab_size, items, device);
  auto loss = [&model = *bert, ids, masked, labels] { return cross_entropy(model({.ids = ids}, masked), labels); };
  return {.model = std::move(bert), .loss = loss};
}

}  // namespace cinta::tools
