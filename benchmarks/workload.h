// The training steps that are measured: a BERT or an MLP on fixed random batches, the same in every contestant.
// Weights and batches are pure functions of the seed; --export writes them to a file that the opponent reads.
#pragma once
#include <memory>
#include <set>

#include "cinta/autograd/tape.h"
#include "cinta/core/random.h"
#include "cinta/data/packing.h"
#include "cinta/models/bert/bert.h"
#include "cinta/models/mlp.h"
#include "cinta/models/model_file.h"
#include "cinta/ops/loss.h"
#include "cinta/optim/adamw.h"
#include "cinta/optim/sgd.h"
#include "cinta/train/token_batch.h"
#include "common.h"

namespace benchmark {

using namespace cinta;

inline constexpr uint64_t workload_seed = 20240607;

inline std::vector<int64_t> random_indices(const char* name, int64_t step, int64_t count, int64_t bound) {
  std::vector<int64_t> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<int64_t>(random_word(workload_seed, stream_id(name), static_cast<uint32_t>(step), i)) % bound;
  return out;
}

/// A model, its batches and its loss.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual models::Module& model() = 0;
  /// Mean loss of batch `index`.
  virtual Tensor loss(int64_t index) = 0;
  /// The tensors of batch `index`, by name.
  virtual std::vector<models::NamedTensor> batch(int64_t index) = 0;
};

class BertWorkload : public Workload {
 public:
  struct Size {
    int64_t batch, sequence, masked, batches;
    bool ragged = false;  ///< lengths from 2 to sequence - 1, all as likely, and so many fewer tokens to guess
  };
  BertWorkload(const models::BertConfig& config, const Size& size) : bert(config, workload_seed) {
    for (int64_t i = 0; i < size.batches; ++i) {
      data::Batch host;
      host.step = i;
      host.ids = random_indices("ids", i, size.batch * size.sequence, config.vocab_size);
      host.lengths.assign(static_cast<size_t>(size.batch), static_cast<int32_t>(size.sequence));
      if (size.ragged)
        for (size_t b = 0; int64_t length : random_indices("lengths", i, size.batch, size.sequence - 2))
          host.lengths[b++] = static_cast<int32_t>(2 + length);
      host.rows = masked_rows(host, size);
      host.labels = random_indices("labels", i, static_cast<int64_t>(host.rows.size()), config.vocab_size);
      const Shape items{static_cast<int64_t>(host.rows.size())};
      ids_.push_back(from_values(host.ids, {size.batch, size.sequence}));
      labels_.push_back(from_values(host.labels, items));
      rows_.push_back(from_values(host.rows, items));
      lengths_.push_back(from_values(std::vector<int64_t>(host.lengths.begin(), host.lengths.end()), {size.batch}));
      tokens_.push_back({.ids = ids_.back()});
      our_rows_.push_back(rows_.back());
      if (!size.ragged) continue;
      const data::Batch packed = data::packed(host);
      tokens_.back() = train::token_batch(packed, cpu);
      our_rows_.back() = from_values(packed.rows, items);
    }
  }
  models::Module& model() override { return bert; }
  Tensor loss(int64_t i) override {
    const size_t at = static_cast<size_t>(i) % ids_.size();
    bert.random().set_step(i);
    return cross_entropy(bert(tokens_[at], our_rows_[at]), labels_[at]);
  }
  std::vector<models::NamedTensor> batch(int64_t i) override {
    const size_t at = static_cast<size_t>(i);
    return {{"ids", ids_[at]}, {"rows", rows_[at]}, {"labels", labels_[at]}, {"lengths", lengths_[at]}};
  }
  models::BertForMaskedLM bert;

 private:
  /// Different positions of each sequence, `masked` of a full one, in order, as rows of the flattened padded batch.
  static std::vector<int64_t> masked_rows(const data::Batch& batch, const Size& size) {
    const auto [samples, sequence, masked, batches, ragged] = size;
    require(masked <= sequence, "benchmark", Where(), "masked positions fit the sequence: ", masked, " of ", sequence);
    std::vector<int64_t> out;
    const std::vector<int64_t> draws = random_indices("rows", batch.step, samples * sequence * 64, sequence);
    for (int64_t b = 0; b < samples; ++b) {
      const int64_t length = batch.lengths[static_cast<size_t>(b)];
      const size_t wanted = static_cast<size_t>(std::max<int64_t>(1, masked * length / sequence));
      std::set<int64_t> chosen;
      for (int64_t i = 0; chosen.size() < wanted && i < sequence * 64; ++i)
        chosen.insert(draws[static_cast<size_t>(b * sequence * 64 + i)] % length);
      for (int64_t position = 0; chosen.size() < wanted; ++position) chosen.insert(position);
      for (int64_t position : chosen) out.push_back(b * sequence + position);
    }
    return out;
  }
  std::vector<Tensor> ids_, labels_, rows_, lengths_, our_rows_;
  std::vector<models::TokenBatch> tokens_;
};

class MlpWorkload : public Workload {
 public:
  MlpWorkload(const std::vector<int64_t>& sizes, int64_t batch, int64_t batches) : mlp_(sizes, workload_seed) {
    for (int64_t i = 0; i < batches; ++i) {
      std::vector<float> values(static_cast<size_t>(batch * sizes.front()));
      for (size_t k = 0; k < values.size(); ++k)
        values[k] = static_cast<float>(random_normal(workload_seed, stream_id("x"), static_cast<uint32_t>(i), k));
      x_.push_back(from_values(values, {batch, sizes.front()}));
      labels_.push_back(from_values(random_indices("labels", i, batch, sizes.back()), {batch}));
    }
  }
  models::Module& model() override { return mlp_; }
  Tensor loss(int64_t i) override {
    const size_t at = static_cast<size_t>(i) % x_.size();
    return cross_entropy(mlp_(x_[at]), labels_[at]);
  }
  std::vector<models::NamedTensor> batch(int64_t i) override {
    const size_t at = static_cast<size_t>(i);
    return {{"x", x_[at]}, {"labels", labels_[at]}};
  }

 private:
  models::Mlp mlp_;
  std::vector<Tensor> x_, labels_;
};

/// What the options --model, --batch, --sequence, --masked, --ragged, --vocab, --dropout, --batches describe. Models:
/// mlp (784-512-512-10), mlp-small (784-256-128-10), and BERT's sizes by name.
inline std::unique_ptr<Workload> make_workload(Options& options, Json& description) {
  const std::string name = options.get("model", std::string("mini"));
  const bool mlp = name.starts_with("mlp");
  const int64_t batch = options.count("batch", int64_t{name == "mlp"         ? 128
                                                       : name == "mlp-small" ? 64
                                                       : name == "base"      ? 8
                                                                             : 16});
  const int64_t batches = options.count("batches", int64_t{4});
  description = {{"model", name}, {"batch", batch}, {"batches", batches}};
  if (mlp)
    return std::make_unique<MlpWorkload>(
        name == "mlp" ? std::vector<int64_t>{784, 512, 512, 10} : std::vector<int64_t>{784, 256, 128, 10}, batch,
        batches);
  const int64_t sequence = options.count("sequence", int64_t{128}), masked = options.count("masked", int64_t{20});
  const int64_t vocabulary = options.count("vocab", int64_t{30522});
  const double dropout = options.get("dropout", 0.0);
  const bool ragged = options.get("ragged", int64_t{0});
  require(!ragged || sequence > 2, "benchmark", Where(), "--ragged draws lengths from 2 to --sequence - 1, given ",
          sequence);
  models::BertConfig config = models::BertConfig::named(name);
  config.num_hidden_layers = options.get("layers", config.num_hidden_layers);
  config.vocab_size = vocabulary;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = dropout;
  description.update(Json{{"sequence", sequence},
                          {"masked", masked},
                          {"ragged", ragged},
                          {"vocab", vocabulary},
                          {"dropout", dropout},
                          {"layers", config.num_hidden_layers},
                          {"heads", config.num_attention_heads},
                          {"eps", config.layer_norm_eps}});
  return std::make_unique<BertWorkload>(config, BertWorkload::Size{batch, sequence, masked, batches, ragged});
}

/// Both contestants' hyper-parameters.
inline constexpr double sgd_rate = 0.01, adamw_rate = 1e-4, adamw_decay = 0.01;

inline std::unique_ptr<optim::Optimizer> make_optimizer(const std::string& name, Workload& workload) {
  if (name == "sgd")
    return std::make_unique<optim::Sgd>(workload.model().parameters(), optim::SgdOptions{.rate = sgd_rate});
  require(name == "adamw", "benchmark", Where(), "--optimizer is sgd or adamw, given ", name.c_str());
  return std::make_unique<optim::AdamW>(workload.model().parameters(),
                                        optim::AdamWOptions{.rate = adamw_rate, .weight_decay = adamw_decay});
}

}  // namespace benchmark
