// Prepared corpora on disk, one safetensors file each: the vocabulary and the sequences, which a later run maps into
// its memory instead of tokenising the text again.
#pragma once
#include <optional>
#include <string>

#include "cinta/data/masked_corpus.h"

namespace cinta::data {

/// What a prepared corpus follows from, in words: the checksum of the text (names and bytes of all documents, in
/// order), how much of it there is, and the options. Equal words, equal corpus.
std::string origin_of(const DocumentSplit& split, const CorpusOptions& options, TokenizerOptions tokenizer);

/// The file in `directory` for a corpus of this origin.
std::string cached_corpus_path(const std::string& directory, const std::string& origin);

/// Maps the corpus in `path`. Throws FileError: of another origin, damaged (the checksum of the vocabulary or of the
/// sequences is not that in the file).
MaskedCorpus load_corpus(const std::string& path, const std::string& origin, TokenizerOptions tokenizer,
                         Where where = Where::current());

/// Writes the file, as a whole or not at all, and its directory where there is none.
void save_corpus(const std::string& path, const std::string& origin, const MaskedCorpus& corpus,
                 Where where = Where::current());

}  // namespace cinta::data
