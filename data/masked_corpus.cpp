// The steps from a folder of text to sequences, or the shorter way through the cache.
#include "cinta/data/masked_corpus.h"

#include <filesystem>

#include "cinta/data/corpus_cache.h"
#include "cinta/data/wordpiece_trainer.h"

namespace cinta::data {
namespace {

constexpr double held_out_fraction = 0.05;
constexpr TokenizerOptions cased{.lower_case = false, .strip_accents = false};  // code means its capitals

MaskedCorpus tokenize(const DocumentSplit& split, const CorpusOptions& options, Where where) {
  WordCounter words(cased);
  for (const Document& document : split.train) words.add(document.text, document.path, where);
  const WordPiece tokenizer(learn_vocabulary(words.counts(), options.vocab_size, where), cased);
  return {tokenizer, make_sequences(split.train, tokenizer, options.length, where),
          make_sequences(split.held_out, tokenizer, options.length, where)};
}

/// From the cache, or made and left there. A cache that cannot be used or written costs time, not the run.
MaskedCorpus tokenize_once(const DocumentSplit& split, const CorpusOptions& options,
                           const Callback<void(const std::string&)>& say, Where where) {
  if (options.cache_dir.empty()) return tokenize(split, options, where);
  const std::string origin = origin_of(split, options, cased), path = cached_corpus_path(options.cache_dir, origin);
  if (std::error_code error; std::filesystem::exists(path, error)) {
    try {
      MaskedCorpus corpus = load_corpus(path, origin, cased, where);
      say(join("tokens from ", path));
      return corpus;
    } catch (const FileError& damage) {
      say(join(damage.text(), "; made anew"));
    }
  }
  MaskedCorpus corpus = tokenize(split, options, where);
  try {
    save_corpus(path, origin, corpus, where);
    say(join("tokens kept in ", path));
  } catch (const FileError& failure) {
    say(join(failure.text(), "; tokens are not kept"));
  }
  return corpus;
}

}  // namespace

MaskedCorpus prepare_corpus(const std::string& path, const CorpusOptions& options,
                            const Callback<void(const std::string&)>& say, Where where) {
  const DocumentSplit split =
      split_documents(read_documents(path, options.on_bad_utf8, where, say), held_out_fraction, options.seed, where);
  size_t bytes = 0;
  for (const Document& document : split.train) bytes += document.text.size();
  MaskedCorpus corpus = tokenize_once(split, options, say, where);
  say(join(path, ": ", split.train.size(), " documents (", bytes >> 10, " KiB) to train on, ", split.held_out.size(),
           " held out, ", split.near_duplicates, " near-duplicates dropped; ", corpus.tokenizer.vocabulary().size(),
           " tokens, ", corpus.train.count, " + ", corpus.held_out.count, " sequences of ", options.length));
  return corpus;
}

}  // namespace cinta::data
