// A model in a directory, as commands read it.
#pragma once
#include <filesystem>

#include "bert_helpers.h"
#include "cinta/data/wordpiece_files.h"
#include "cinta/models/model_file.h"
#include "scratch.h"
#include "vocabularies.h"

namespace cinta::testing {

/// A small model with first weights, ready to predict, and its directory: weights, configuration, tokenizer.
template <class Model>
struct Saved {
  explicit Saved(uint64_t seed, const data::WordPiece& tokenizer = numbered_words())
      : model(config_for(tokenizer), seed) {
    std::filesystem::create_directory(directory);
    models::save_weights(model, directory + "/model.safetensors");
    write_bytes(directory + "/config.json", model.config().to_json(model.architecture()));
    data::save_wordpiece(tokenizer, directory);
    model.train(false);
  }
  static models::BertConfig config_for(const data::WordPiece& tokenizer) {
    models::BertConfig config = small_config(0.1);
    config.vocab_size = tokenizer.vocabulary().size();
    return config;
  }
  Scratch scratch;
  const std::string directory = scratch / "model";
  Model model;
};

}  // namespace cinta::testing
