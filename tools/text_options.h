// The options of commands that read texts: what becomes of bytes that are not UTF-8, and of a Σ at the end of a word.
#pragma once
#include <string>

#include "cinta/data/bad_utf8.h"
#include "cinta/data/wordpiece.h"
#include "cinta/models/bert/config.h"
#include "tools/model_options.h"

namespace cinta::tools {

struct TextOptions {
  std::string on_bad_utf8 = "error";
  bool final_sigma = false;

  void add_to(CLI::App& command);
  /// For commands that take the tokenizer of a model.
  void add_final_sigma(CLI::App& command);
  data::BadUtf8 bad_utf8() const;
  /// A text of the command line or of a line, with what is no UTF-8 in it refused or replaced.
  std::string utf8(std::string text) const;
  /// The tokenizer in a directory, and with --final_sigma as if its files asked for that.
  data::WordPiece load_tokenizer(const std::string& directory) const;
  /// The same for a model that is to read its tokens. Throws FileError where there are more than it has rows for; of
  /// rows that no token is there for, a note.
  data::WordPiece load_tokenizer(const ModelOptions& model, const models::BertConfig& config) const;
};

}  // namespace cinta::tools
