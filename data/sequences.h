// Token sequences of equal length, cut from documents: what language models are trained on.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cinta/data/corpus.h"
#include "cinta/data/wordpiece.h"

namespace cinta::data {

/// Sequences padded at the end. Copies share what the spans show: arrays in memory or a mapped file.
struct Sequences {
  int64_t count = 0, length = 0;
  std::span<const int32_t> ids;        ///< [count, length]: [CLS] tokens [SEP] [PAD]...
  std::span<const int32_t> lengths;    ///< [count], [CLS] and [SEP] counted
  std::span<const int32_t> documents;  ///< [count]: the number of the document each was cut from, ascending
  std::shared_ptr<const void> held;

  /// A sequence's tokens between [CLS] and [SEP].
  std::span<const int32_t> tokens(int64_t sequence) const;
  /// The first `some` of them, or all where there are fewer.
  Sequences first(int64_t some) const;
};

/// What sequences are gathered in.
struct SequenceArrays {
  std::vector<int32_t> ids, lengths, documents;
};
/// Sequences of `length` that own `arrays`.
Sequences sequences_of(int64_t length, SequenceArrays arrays);

/// Cuts each document's tokens into sequences of `length`; only a document's last sequence may need padding.
Sequences make_sequences(const std::vector<Document>& documents, const WordPiece& tokenizer, int64_t length,
                         Where where = Where::current());

}  // namespace cinta::data
