// Learning a WordPiece vocabulary: characters first, then the most frequent pair of neighbours becomes one piece, again
// and again (the byte-pair merges of Sennrich et al. 2016, with "##" on pieces inside a word). Deterministic: among
// equally frequent pairs the one whose pieces were learnt first wins.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cinta/data/vocabulary.h"
#include "cinta/data/wordpiece.h"

namespace cinta::data {

/// How often each word occurs.
using WordCounts = std::unordered_map<std::string, int64_t>;

/// Adds the words of a text, as BERT's basic tokenizer finds them. `name` stands for the text in messages.
void count_words(WordCounts& counts, std::string_view text, TokenizerOptions options = {},
                 const std::string& name = "text", Where where = Where::current());

/// A vocabulary of at most `size` tokens: the five special ones, the characters (the 1000 most frequent; words with
/// others are left out), then the merges in order. It is smaller when no pair occurs twice any more.
/// Throws ValueError when `size` does not even hold the special tokens and the characters.
Vocabulary learn_vocabulary(const WordCounts& counts, int64_t size, Where where = Where::current());

}  // namespace cinta::data
