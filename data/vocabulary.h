// The tokens of a model and their numbers, as kept in vocab.txt: one token a line, its number is the line's.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cinta/core/error.h"

namespace cinta::data {

class Vocabulary {
 public:
  /// Throws FileError naming `name` and the line for a token that is empty, repeated or not UTF-8, and when [UNK] is
  /// missing.
  explicit Vocabulary(std::vector<std::string> tokens, const std::string& name = "vocabulary",
                      Where where = Where::current());
  /// Reads vocab.txt: lines end in LF or CRLF, blanks at a line's end are dropped, empty lines may stand at the end
  /// only.
  static Vocabulary load(const std::string& path, Where where = Where::current());
  /// The same from a text in memory, which `name` stands for in messages.
  static Vocabulary parse(std::string_view text, const std::string& name, Where where = Where::current());
  /// What vocab.txt holds.
  std::string text() const;
  /// Writes vocab.txt.
  void save(const std::string& path, Where where = Where::current()) const;

  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  const std::string& token(int64_t id, Where where = Where::current()) const;
  /// The token's number, or -1.
  int32_t find(std::string_view token) const;
  /// The token's number; throws ValueError when it has none.
  int32_t id(std::string_view token, Where where = Where::current()) const;
  bool is_special(int64_t id) const;

  /// The tokens that stand for no text, in the order a learnt vocabulary begins with.
  static constexpr std::string_view specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

 private:
  struct Index;  // a hash table, which those who include this need not read
  std::vector<std::string> tokens_;
  std::shared_ptr<const Index> index_;
};

}  // namespace cinta::data
