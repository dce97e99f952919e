// A model and its loss on one batch of random data: what is traced and timed where no data are at hand.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cinta/autograd/autocast.h"
#include "cinta/autograd/checkpoint.h"
#include "cinta/models/bert/bert.h"
#include "cinta/models/module.h"
#include "tools/seen_keys.h"

namespace CLI {
class App;
}

namespace cinta::tools {

struct SampleStep {
  std::unique_ptr<models::Module> model;
  std::function<Tensor()> loss;
  std::optional<autograd::Autocast> autocast = {};  ///< the types of a step; none: as the weights are
  int64_t tokens = 0;                               ///< of a BERT, without what a batch is filled up with
  SeenKeys seen = {};
};

/// What a step is made for.
struct SampleModel {
  std::string architecture;         ///< "mlp", or the class that a config.json names
  std::vector<int64_t> sizes = {};  ///< of an MLP, from input to output
  models::BertConfig config = {};   ///< of any other
  bool named = false;               ///< its vocabulary and its positions are whatever the caller wants
};
inline constexpr const char* sample_model_help =
    "tiny, mini, small, base, large (BERTs that guess masked tokens), mlp (784,512,512,10), an MLP's widths, or the "
    "directory of a model";
/// The model that `text` names, as that says. A BERT by name has `vocabulary` tokens and takes sequences of `sequence`
/// at least; of a directory the configuration is read, and not the weights.
SampleModel sample_model(const std::string& text, int64_t vocabulary, int64_t sequence);

/// Of a BERT that guesses masked tokens `masked` of each sequence are; 0: 15 % of them, as BERT's authors do.
struct SampleTokens {
  int64_t batch, sequence = 0, masked = 0;
  /// Sequences of 2 to sequence - 1 tokens, all as likely, laid end to end, and so many fewer of each masked.
  bool ragged = false;
};
struct SampleInputs {
  bool zeros = false;                   ///< and not random numbers, which take time; of ragged sequences, labels alone
  bool numbers = true;                  ///< false: what is no index is left as memory is, for a step that nobody reads
  std::function<void()> ready = [] {};  ///< called when the inputs are there, and the model is not
};
/// Throws ValueError for sequences longer than the model's table of positions, ragged ones of fewer than 3 tokens, and
/// for what the model does not have: masked tokens, layers to checkpoint, ragged sequences.
SampleStep sample_step(const SampleModel& model, SampleTokens tokens, Device device,
                       const std::string& checkpointing = "none", const SampleInputs& inputs = {});

inline constexpr const char* sample_length_help = "tokens of a sample; where not given as many as the model takes";
/// --sequence_length of `command`, or where it is not given as many tokens of its default as the model takes. Throws
/// ValueError where it, or --vocab_size, has no effect on the model.
int64_t sample_length(const SampleModel& model, const CLI::App& command, int64_t length);

}  // namespace cinta::tools
