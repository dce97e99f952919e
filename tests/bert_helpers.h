// What tests of models share: a small BERT, the tensors of a file and the gradients of a model by name, the number of
// threads.
#pragma once
#include <map>
#include <string>

#include "cinta/autograd/tape.h"
#include "cinta/data/safetensors.h"
#include "cinta/models/bert/bert.h"
#include "cinta/ops/shape.h"
#include "thread_scope.h"

namespace cinta::testing {

/// A file's tensors by name, on `device`.
inline std::map<std::string, Tensor> read_tensors(const std::string& path, Device device = cpu) {
  const data::SafetensorsFile file = data::SafetensorsFile::open(path);
  std::map<std::string, Tensor> out;
  for (const data::SafetensorsEntry& entry : file.entries()) out[entry.name] = to(file.tensor(entry), device);
  return out;
}

/// The gradients under the names that files use: a fused one as its parts.
inline std::map<std::string, Tensor> gradients(const models::Module& model) {
  std::map<std::string, Tensor> out;
  for (const optim::Parameter& parameter : model.parameters()) {
    const Tensor gradient = autograd::gradient(parameter.tensor);
    require(bool(gradient), "test", Where(), parameter.name, " has a gradient");
    const size_t fused = parameter.name.find("qkv");
    if (fused == std::string::npos) {
      out[parameter.name] = gradient;
      continue;
    }
    const int64_t rows = gradient.size(0) / 3;
    int64_t part = 0;
    for (const char* name : {"query", "key", "value"}) {
      out[parameter.name.substr(0, fused) + name + parameter.name.substr(fused + 3)] =
          slice(gradient, 0, part * rows, (part + 1) * rows);
      ++part;
    }
  }
  return out;
}

inline models::BertConfig small_config(double dropout = 0) {
  models::BertConfig config;
  config.vocab_size = 61;
  config.hidden_size = 20;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.intermediate_size = 24;
  config.max_position_embeddings = 12;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = dropout;
  config.num_labels = 3;
  return config;
}

}  // namespace cinta::testing
