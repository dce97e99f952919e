// What cinta computes from a directory of model files, for model_files.py to compare with Python:
//   bert_outputs DIRECTORY ARCHITECTURE INPUTS OUTPUTS   logits, loss and gradients of one batch, as safetensors
//   bert_outputs DIRECTORY tokens                        the token numbers of each line of standard input
// Build it in the root:
//   c++ -std=c++20 -O2 -I. -Iinclude tests/interop/bert_outputs.cpp -Lbuild/release/lib -lcinta -o bert_outputs
#include <cstdio>
#include <iostream>
#include <map>

#include "cinta/data/file.h"
#include "cinta/data/wordpiece_files.h"
#include "cinta/models/model_file.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"
#include "tests/bert_helpers.h"

using namespace cinta;
using namespace cinta::models;

namespace {

using Tensors = std::map<std::string, Tensor>;

template <class Model, class Forward>
void compute(const std::string& directory, const std::string& inputs, const std::string& outputs, Forward forward) {
  const std::string path = directory + "/config.json";
  Model model(BertConfig::from_json(data::read_file(path), path));
  std::printf("%s\n", load_weights(model, directory).text().c_str());
  model.train(false);
  Tensors in = testing::read_tensors(inputs), out;
  const TokenBatch batch{in["ids"], in["types"], in["lengths"]};
  const Tensor loss = forward(model, batch, in, out);
  autograd::backward(loss);
  std::vector<NamedTensor> named{{"loss", loss}};
  for (const auto& [name, tensor] : out) named.push_back({name, tensor});
  for (const auto& [name, tensor] : testing::gradients(model)) named.push_back({"gradient." + name, tensor});
  std::vector<Tensor> hold;
  data::save_safetensors(outputs, file_tensors(named, hold));
}

void print_tokens(const std::string& directory) {
  const data::WordPiece tokenizer = data::load_wordpiece(directory);
  for (std::string line; std::getline(std::cin, line);) {
    for (int32_t id : tokenizer.encode_framed(line).ids) std::printf("%d ", id);
    std::puts("");
  }
}

}  // namespace

int main(int count, char** words) {
  const std::string directory = count > 1 ? words[1] : "", kind = count > 2 ? words[2] : "";
  try {
    if (kind == "tokens") {
      print_tokens(directory);
      return 0;
    }
    require(count == 5, "bert_outputs", Where(), "four arguments, given ", count - 1);
    if (kind == "BertForMaskedLM")
      compute<BertForMaskedLM>(directory, words[3], words[4], [](auto& model, auto& batch, Tensors& in, Tensors& out) {
        out["logits"] = model(batch);
        return cross_entropy(out["logits"], in["labels"]);
      });
    else if (kind == "BertForPreTraining")
      compute<BertForPreTraining>(directory, words[3], words[4], [](auto& model, auto& batch, auto& in, auto& out) {
        const auto both = model(batch);
        out["logits"] = both.masked;
        out["next_sentence_logits"] = both.next_sentence;
        return cross_entropy(both.masked, in["labels"]) + cross_entropy(both.next_sentence, in["next_sentence"]);
      });
    else if (kind == "BertForSequenceClassification")
      compute<BertForSequenceClassification>(directory, words[3], words[4],
                                             [](auto& model, auto& batch, auto& in, auto& out) {
                                               out["logits"] = model(batch);
                                               return cross_entropy(out["logits"], in["classes"]);
                                             });
    else if (kind == "BertModel")
      compute<BertWithoutHead>(directory, words[3], words[4], [](auto& model, auto& batch, auto& in, auto& out) {
        const auto [hidden, pooled] = model(batch);
        out["last_hidden_state"] = hidden;
        out["pooler_output"] = pooled;
        return cross_entropy(pooled, in["classes"]) +
               cross_entropy(squeeze(slice(hidden, 1, 1, 2), 1), in["next_sentence"]);
      });
    else
      require(false, "bert_outputs", Where(), "an architecture, given '", kind, "'");
  } catch (const Error& error) {
    std::fprintf(stderr, "bert_outputs: %s\n", error.what());
    return 2;
  }
}
