// A model and its loss on one batch of random data: what is traced and timed where no data are at hand.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cinta/autograd/autocast.h"
#include "cinta/autograd/checkpoint.h"
#include "cinta/models/bert/bert.h"
#include "cinta/models/module.h"

namespace cinta::tools {

struct SampleStep {
  std::unique_ptr<models::Module> model;
  std::function<Tensor()> loss;
  std::optional<autograd::Autocast> autocast = {};  ///< the types of a step; none: as the weights are
};

/// A perceptron of these widths, from input to output, on `batch` samples.
SampleStep sample_mlp(const std::vector<int64_t>& sizes, int64_t batch, Device device);

/// `masked` tokens of each sequence are guessed; 0: 15 % of them, as BERT's authors do.
struct SampleTokens {
  int64_t batch, sequence, masked = 0;
};
/// A BERT that guesses masked tokens. Throws ValueError for sequences longer than its table of positions.
SampleStep sample_bert(const models::BertConfig& config, SampleTokens tokens, Device device,
                       autograd::CheckpointPolicy checkpointing = {});

}  // namespace cinta::tools
