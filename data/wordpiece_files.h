// A tokenizer as a folder of files, under the names that Python's BertTokenizer reads.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "cinta/core/error.h"
#include "cinta/data/wordpiece.h"

namespace cinta::data {

/// The names and contents of the files: `vocab.txt` and `tokenizer_config.json` (do_lower_case, strip_accents,
/// final_sigma where it is on, which Python ignores, and model_max_length where `longest` tokens of a sequence are
/// known, to which Python cuts when it is asked to cut).
std::vector<std::pair<std::string, std::string>> wordpiece_files(const WordPiece& tokenizer, int64_t longest = 0);

/// Writes them into an existing folder.
void save_wordpiece(const WordPiece& tokenizer, const std::string& folder, Where where = Where::current());

/// The file that a folder's tokens are in: `tokenizer.json`, which transformers reads before others, or where there is
/// none `vocab.txt`.
std::string vocabulary_path(const std::string& folder);

/// Reads that file and, where it exists, `tokenizer_config.json`; without the latter the text is lower-cased, as BERT's
/// original vocabularies want it, and with it tokenizer.json must agree. Throws FileError, also for files that ask for
/// another kind of tokenizer, that add or rename tokens (those two, special_tokens_map.json, added_tokens.json), or
/// that contradict each other.
WordPiece load_wordpiece(const std::string& folder, Where where = Where::current());

}  // namespace cinta::data
