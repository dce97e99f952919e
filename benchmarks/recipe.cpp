// Writes down what the quickstart's BERT is trained on: first weights, batches in their order, the held-out part. So
// that another framework can be given the same recipe (same_time).
#include <nlohmann/json.hpp>

#include "cinta/data/masked_corpus.h"
#include "cinta/data/safetensors.h"
#include "cinta/models/model_file.h"
#include "cinta/train/masked_task.h"
#include "common.h"

namespace benchmark {
namespace {

using namespace cinta;

constexpr int64_t length = 64, samples = 32, most_held_out = 10000;  // the defaults of `cinta train bert`

/// Batches by name, as pytorch/step.py reads them.
class BatchFile {
 public:
  void add(const std::string& prefix, const data::Batch& batch) {
    const auto rows = static_cast<int64_t>(batch.rows.size());
    put(prefix + "ids", batch.ids, {samples, length});
    put(prefix + "lengths", std::vector<int64_t>(batch.lengths.begin(), batch.lengths.end()), {samples});
    put(prefix + "rows", batch.rows, {rows});
    put(prefix + "labels", batch.labels, {rows});
  }
  std::vector<models::NamedTensor> tensors;

 private:
  void put(const std::string& name, const std::vector<int64_t>& values, const Shape& shape) {
    tensors.push_back({name, from_values(values, shape)});
  }
};

void main_program(Options options) {
  const std::string text = options.get("data", std::string()), path = options.get("export", std::string());
  const int64_t batches = options.get("batches", int64_t{6000});
  options.finish();
  require(!text.empty() && !path.empty(), "recipe", Where(), "--data FOLDER --export FILE");
  data::MaskedCorpus corpus = data::prepare_corpus(text, {}, [](const std::string&) {});
  corpus.held_out = corpus.held_out.first(std::min(most_held_out, corpus.held_out.count));
  models::BertConfig config = models::BertConfig::named("tiny");
  config.vocab_size = corpus.tokenizer.vocabulary().size();
  config.max_position_embeddings = length;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  config.initializer_range = config.scaled_initializer_range();
  train::MaskedTask task(corpus, config, samples, 0);
  const data::Masker masker(corpus.tokenizer.vocabulary(), 0);
  const data::MaskedBatches held_out(corpus.held_out, masker, samples, 0, data::Walk::in_order);
  BatchFile file;
  for (const models::NamedTensor& named : task.model().named_tensors())
    file.tensors.push_back({"model." + named.name, named.tensor});
  for (int64_t i = 0; i < batches; ++i) file.add("batch." + std::to_string(i) + ".", task.batches().batch(i));
  for (int64_t i = 0; i < held_out.steps_per_epoch(); ++i)
    file.add("held_out." + std::to_string(i) + ".", held_out.batch(i));
  const Json workload{{"model", "tiny"},
                      {"batch", samples},
                      {"sequence", length},
                      {"ragged", true},
                      {"vocab", config.vocab_size},
                      {"dropout", 0},
                      {"layers", config.num_hidden_layers},
                      {"heads", config.num_attention_heads},
                      {"eps", config.layer_norm_eps},
                      {"batches", batches}};
  std::vector<Tensor> hold;
  data::save_safetensors(
      path, models::file_tensors(file.tensors, hold),
      {{"workload", workload.dump()},
       {"hyper_parameters", Json{{"sgd_rate", 0}, {"adamw_rate", 2e-3}, {"adamw_decay", 0.01}}.dump()}});
}

}  // namespace
}  // namespace benchmark

int main(int argc, char** argv) {
  return benchmark::guarded([&] { benchmark::main_program(benchmark::Options(argc, argv)); });
}
