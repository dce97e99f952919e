// Text made ready for pre-training a BERT: from a folder to a tokenizer and sequences.
#pragma once
#include <string>

#include "cinta/core/callback.h"
#include "cinta/data/sequences.h"

namespace cinta::data {

/// The tokenizer and both parts of a corpus.
struct MaskedCorpus {
  WordPiece tokenizer;
  Sequences train, held_out;
};

struct CorpusOptions {
  int64_t vocab_size = 4096;
  int64_t length = 64;  ///< of a sequence, in tokens
  uint64_t seed = 0;    ///< of the choice of held-out files
  BadUtf8 on_bad_utf8 = BadUtf8::error;
  /// Where prepared corpora are kept (data/corpus_cache.h), so that the next run on this text begins at once; empty:
  /// not.
  std::string cache_dir = {};
};

/// Reads text files under `path`, splits them by file, learns a vocabulary on the training part and cuts sequences.
/// `say` is told what was found.
MaskedCorpus prepare_corpus(const std::string& path, const CorpusOptions& options,
                            const Callback<void(const std::string&)>& say, Where where = Where::current());

}  // namespace cinta::data
