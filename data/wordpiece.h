// BERT's tokenizer: text -> words -> pieces (Devlin et al. 2018, as google-research/bert defines it).
// Where the public implementations differ, this one follows the Python of Google and of the slow BertTokenizer; the
// list of differences stands with the tests. A final Σ is lowered to σ, as in Rust's, unless one asks for ς.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cinta/data/vocabulary.h"

namespace cinta::data {

inline constexpr int64_t longest_word = 100;  ///< characters; a longer word is [UNK]

struct TokenizerOptions {
  bool lower_case = true;
  bool strip_accents = true;  ///< usually goes with lower_case
  bool final_sigma = false;   ///< Σ at the end of a word becomes ς where text is lower-cased, as in Python
  bool operator==(const TokenizerOptions&) const = default;
};

/// The words of BERT's basic tokenizer: controls dropped, split at white space, around CJK ideographs and around each
/// punctuation character, lower-cased, accents stripped. Throws FileError for text that is not UTF-8, naming `name`.
std::vector<std::string> basic_words(std::string_view text, TokenizerOptions options = {},
                                     const std::string& name = "text", Where where = Where::current());

/// One text or a pair, framed for the model.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> types;  ///< 0 up to and including the first [SEP], 1 after it
};

class WordPiece {
 public:
  explicit WordPiece(Vocabulary vocabulary, TokenizerOptions options = {});
  const Vocabulary& vocabulary() const { return vocabulary_; }
  const TokenizerOptions& options() const { return options_; }

  /// The pieces of a text without frame. The special tokens written in the text ("[MASK]") are themselves.
  /// Throws FileError for text that is not UTF-8, naming `name` and the byte.
  std::vector<int32_t> encode(std::string_view text, const std::string& name = "text",
                              Where where = Where::current()) const;
  /// [CLS] text [SEP], cut to `max_length` tokens (0: not cut).
  Encoding encode_framed(std::string_view text, int64_t max_length = 0, Where where = Where::current()) const;
  /// [CLS] first [SEP] second [SEP]. Where that is too long the longer text is cut, to half of the room at least, then
  /// the shorter too; an odd token is the longer's, the second's of equals (longest_first of Python's tokenizers).
  Encoding encode_pair(std::string_view first, std::string_view second, int64_t max_length = 0,
                       Where where = Where::current()) const;
  /// Text for the eye: pieces joined, words parted by spaces, [PAD] [CLS] [SEP] left out.
  std::string decode(std::span<const int32_t> ids, Where where = Where::current()) const;

 private:
  /// encode(), which stops once it has `most` tokens or a few more.
  std::vector<int32_t> encode_some(std::string_view text, size_t most, const std::string& name, Where where) const;
  /// Greedy longest match; [UNK] for a word that has no complete match or more than 100 characters.
  std::vector<int32_t> pieces(const std::string& word) const;

  Vocabulary vocabulary_;
  TokenizerOptions options_;
  int32_t unknown_;
};

}  // namespace cinta::data
