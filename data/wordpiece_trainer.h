// Learning a WordPiece vocabulary: characters first, then the most frequent pair of neighbours becomes one piece, again
// and again (the byte-pair merges of Sennrich et al. 2016, with "##" on pieces inside a word). Deterministic: among
// equally frequent pairs the one whose pieces were learnt first wins.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cinta/data/vocabulary.h"
#include "cinta/data/wordpiece.h"

namespace cinta::data {

/// How often a word occurs.
struct WordCount {
  std::string word;
  int64_t count = 0;
};

/// Counts the words of texts, as BERT's basic tokenizer finds them.
class WordCounter {
 public:
  explicit WordCounter(TokenizerOptions options = {});
  WordCounter(const WordCounter&) = delete;
  WordCounter& operator=(const WordCounter&) = delete;
  /// `name` stands for the text in messages. Throws FileError for text that is not UTF-8.
  void add(std::string_view text, const std::string& name = "text", Where where = Where::current());
  /// In the order of the words' bytes.
  std::vector<WordCount> counts() const;

 private:
  struct Table;
  TokenizerOptions options_;
  std::shared_ptr<Table> table_;
};

/// A vocabulary of at most `size` tokens: the five special ones, the characters (the 1000 most frequent; words with
/// others are left out), then the merges in order; the counts' order is no matter. It is smaller when no pair occurs
/// twice any more. Throws ValueError when `size` does not even hold the special tokens and the characters.
Vocabulary learn_vocabulary(const std::vector<WordCount>& counts, int64_t size, Where where = Where::current());

}  // namespace cinta::data
