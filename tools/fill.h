// Filling in masked tokens.
#pragma once
#include <string>

#include "cinta/core/callback.h"
#include "cinta/data/wordpiece.h"
#include "cinta/models/bert/bert.h"

namespace cinta::tools {

/// The masked-language head's logits of a batch's rows.
using MaskedLogits = Callback<Tensor(const models::TokenBatch& batch, const Tensor& rows)>;

/// Prints `text` and for each [MASK] in it the `count` most likely tokens with their probabilities. `logits` are those
/// of `model`. Throws ValueError for a text without [MASK] or longer than the model's positions.
void print_filled(models::BertBase& model, const MaskedLogits& logits, const data::WordPiece& tokenizer,
                  const std::string& text, int64_t count);

}  // namespace cinta::tools
