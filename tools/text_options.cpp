// Declares the options and applies them.
#include "tools/text_options.h"

#include <CLI/CLI.hpp>

#include "cinta/data/unicode.h"
#include "cinta/data/wordpiece_files.h"

namespace cinta::tools {

void TextOptions::add_to(CLI::App& command) {
  command
      .add_option("--on_bad_utf8", on_bad_utf8,
                  "what becomes of bytes that are not UTF-8: error, or replace (by U+FFFD, which the tokenizer passes "
                  "over)")
      ->capture_default_str()
      ->check(CLI::IsMember({"error", "replace"}));
}

void TextOptions::add_final_sigma(CLI::App& command) {
  command.add_flag(
      "--final_sigma", final_sigma,
      "lower-case a final capital sigma as Python does (\u03c2), and not as Rust does (\u03c3); also on where the "
      "model's tokenizer_config.json says so");
}

data::BadUtf8 TextOptions::bad_utf8() const {
  return on_bad_utf8 == "replace" ? data::BadUtf8::replace : data::BadUtf8::error;
}

std::string TextOptions::utf8(std::string text) const {
  return data::utf8_text(std::move(text), bad_utf8(), "text", Where());
}

data::WordPiece TextOptions::load_tokenizer(const std::string& directory) const {
  data::WordPiece tokenizer = data::load_wordpiece(directory, Where());
  if (!final_sigma) return tokenizer;
  data::TokenizerOptions options = tokenizer.options();
  require(options.lower_case, "tokenizer", Where(), "--final_sigma is for a tokenizer that lower-cases; that of ",
          directory, " keeps capitals");
  options.final_sigma = true;
  return data::WordPiece(tokenizer.vocabulary(), options);
}

data::WordPiece TextOptions::load_tokenizer(const ModelOptions& model, const models::BertConfig& config) const {
  data::WordPiece tokenizer = load_tokenizer(model.directory);
  const std::string path = data::vocabulary_path(model.directory);
  const int64_t tokens = tokenizer.vocabulary().size(), rows = config.vocab_size;
  require<FileError>(tokens <= rows, "tokenizer", Where(), path, ": has ", tokens,
                     " tokens, config.json says vocab_size ", rows);
  if (tokens < rows)  // some pad the table; a vocabulary that was cut off looks the same
    model.note(
        join(path, ": has ", tokens, " tokens, the model ", rows, "; the last ", rows - tokens, " are never met"));
  return tokenizer;
}

}  // namespace cinta::tools
