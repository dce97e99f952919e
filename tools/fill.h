// Filling in masked tokens.
#pragma once
#include <string>
#include <vector>

#include "cinta/core/callback.h"
#include "cinta/data/wordpiece.h"
#include "cinta/models/bert/bert.h"

namespace cinta::tools {

/// The masked-language head's logits of a batch's rows.
using MaskedLogits = Callback<Tensor(const models::TokenBatch& batch, const Tensor& rows)>;

struct Guess {
  std::string token;
  double probability;
};

/// For each [MASK] of `text` the `count` most likely tokens. `logits` are those of `model`. Throws ValueError for a
/// text without [MASK] or longer than the model's positions.
std::vector<std::vector<Guess>> fill(models::BertBase& model, const MaskedLogits& logits,
                                     const data::WordPiece& tokenizer, const std::string& text, int64_t count);

void print_filled(const std::string& text, const std::vector<std::vector<Guess>>& guesses);

}  // namespace cinta::tools
