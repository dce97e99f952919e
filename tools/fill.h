// Filling in masked tokens.
#pragma once
#include <string>

#include "cinta/data/wordpiece.h"
#include "cinta/models/bert/bert.h"

namespace cinta::tools {

/// Prints `text` and for each [MASK] in it the `count` most likely tokens with their probabilities. Throws ValueError
/// for a text without [MASK] or longer than the model's positions.
void print_filled(models::BertForMaskedLM& model, const data::WordPiece& tokenizer, const std::string& text,
                  int64_t count);

}  // namespace cinta::tools
