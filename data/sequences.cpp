// Cutting documents into sequences.
#include "cinta/data/sequences.h"

#include <algorithm>

namespace cinta::data {

std::span<const int32_t> Sequences::tokens(int64_t sequence) const {
  return ids.subspan(static_cast<size_t>(sequence * length) + 1,
                     static_cast<size_t>(lengths[static_cast<size_t>(sequence)]) - 2);
}

Sequences Sequences::first(int64_t some) const {
  Sequences out = *this;
  out.count = std::min(count, some);
  const auto taken = static_cast<size_t>(out.count);
  out.ids = ids.first(taken * static_cast<size_t>(length));
  out.lengths = lengths.first(taken);
  out.documents = documents.first(taken);
  return out;
}

Sequences sequences_of(int64_t length, SequenceArrays arrays) {
  const auto held = std::make_shared<const SequenceArrays>(std::move(arrays));
  return {static_cast<int64_t>(held->lengths.size()), length, held->ids, held->lengths, held->documents, held};
}

Sequences make_sequences(const std::vector<Document>& documents, const WordPiece& tokenizer, int64_t length,
                         Where where) {
  require(length >= 3, "make_sequences", where, "a sequence needs [CLS], a token and [SEP], given length ", length);
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const int32_t begin = vocabulary.id("[CLS]", where), end = vocabulary.id("[SEP]", where);
  const int32_t padding = vocabulary.id("[PAD]", where);
  SequenceArrays out;
  const size_t room = static_cast<size_t>(length - 2);
  for (size_t number = 0; number < documents.size(); ++number) {
    const Document& document = documents[number];
    const std::vector<int32_t> tokens = tokenizer.encode(document.text, document.path, where);
    for (size_t at = 0; at < tokens.size(); at += room) {
      const size_t count = std::min(room, tokens.size() - at);
      out.ids.push_back(begin);
      out.ids.insert(out.ids.end(), tokens.begin() + static_cast<ptrdiff_t>(at),
                     tokens.begin() + static_cast<ptrdiff_t>(at + count));
      out.ids.push_back(end);
      out.ids.insert(out.ids.end(), room - count, padding);
      out.lengths.push_back(static_cast<int32_t>(count) + 2);
      out.documents.push_back(static_cast<int32_t>(number));
    }
  }
  return sequences_of(length, std::move(out));
}

}  // namespace cinta::data
