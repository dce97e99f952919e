// tokenizer.json, in which the `tokenizers` library keeps a whole tokenizer.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cinta/core/error.h"
#include "cinta/data/wordpiece.h"

namespace cinta::data {

/// Reads a tokenizer that does what BERT's does: a WordPiece model behind a BertNormalizer (with its flags lowercase
/// and strip_accents) and a BertPreTokenizer, and no added tokens but BERT's special ones. Throws FileError for any
/// other, naming the part that is not supported and what was found.
WordPiece read_tokenizer_json(const std::string& path, Where where = Where::current());

/// The name of a token that texts are searched for before they are cut: a text, or {"content": name, ..}. Throws
/// FileError naming `place` unless it is one of BERT's special tokens, without a flag that lets it match elsewhere.
std::string special_token(const nlohmann::json& token, const std::string& place, Where where = Where::current());

}  // namespace cinta::data
