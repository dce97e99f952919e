// Small vocabularies: the special tokens, and after them what a test reads.
#pragma once
#include <string>
#include <vector>

#include "cinta/data/wordpiece.h"

namespace cinta::testing {

inline data::Vocabulary with_specials(const std::vector<std::string>& tokens) {
  std::vector<std::string> all(std::begin(data::Vocabulary::specials), std::end(data::Vocabulary::specials));
  all.insert(all.end(), tokens.begin(), tokens.end());
  return data::Vocabulary(all);
}

/// a .. z
inline const data::Vocabulary& letters() {
  static const data::Vocabulary vocabulary = [] {
    std::vector<std::string> tokens;
    for (char letter = 'a'; letter <= 'z'; ++letter) tokens.emplace_back(1, letter);
    return with_specials(tokens);
  }();
  return vocabulary;
}

/// `size` tokens in all; each word is called by its number: word5, word6, ..
inline data::WordPiece numbered_words(int64_t size = 61) {
  std::vector<std::string> tokens;
  for (int64_t id = std::size(data::Vocabulary::specials); id < size; ++id)
    tokens.push_back("word" + std::to_string(id));
  return data::WordPiece(with_specials(tokens), {.lower_case = false, .strip_accents = false});
}

}  // namespace cinta::testing
