// Drawing the second segment, and laying a pair out.
#include "cinta/data/sentence_pairs.h"

#include <algorithm>

#include "cinta/core/random.h"

namespace cinta::data {

SentencePairs::SentencePairs(const Sequences& segments, const Vocabulary& vocabulary, uint64_t seed, const char* text,
                             Where where)
    : segments_(segments),
      seed_(seed),
      begin_(vocabulary.id("[CLS]", where)),
      end_(vocabulary.id("[SEP]", where)),
      padding_(vocabulary.id("[PAD]", where)) {
  for (int64_t i = 0; i + 1 < segments.count; ++i)
    if (segments.documents[static_cast<size_t>(i)] == segments.documents[static_cast<size_t>(i) + 1])
      firsts_.push_back(i);
  require(!firsts_.empty(), "sentence_pairs", where, text, " has no document longer than one segment of ",
          segments.length, " tokens, there is nothing to follow");
  require(segments.count > 2, "sentence_pairs", where, text, " needs a third segment, to draw what does not follow");
}

SentencePair SentencePairs::pair(int64_t sample, uint32_t epoch) const {
  const int64_t first = firsts_[static_cast<size_t>(sample)];
  const PhiloxBlock words = random_block(seed_, stream_id("sentence_pairs"), epoch, static_cast<uint64_t>(sample));
  if (words[0] & 1) return {first, first + 1, SecondSegment::follows};
  // Any segment but those of its document, or of a corpus that is one document, any but itself and its follower.
  const bool alone = segments_.documents.front() == segments_.documents.back();
  const auto own = std::ranges::equal_range(segments_.documents, segments_.documents[static_cast<size_t>(first)]);
  const int64_t skipped_begin = alone ? first : own.begin() - segments_.documents.begin();
  const int64_t skipped = alone ? 2 : std::ssize(own);
  const auto place =
      static_cast<int64_t>(to_below(words[1], words[2], static_cast<uint64_t>(segments_.count - skipped)));
  return {first, place < skipped_begin ? place : place + skipped, SecondSegment::drawn};
}

int32_t SentencePairs::write(const SentencePair& pair, std::span<int64_t> ids, std::span<int64_t> types) const {
  std::ranges::fill(types, 0);
  auto out = ids.begin();
  *out++ = begin_;
  out = std::ranges::copy(segments_.tokens(pair.first), out).out;
  *out++ = end_;
  const auto second = out;
  out = std::ranges::copy(segments_.tokens(pair.second), out).out;
  *out++ = end_;
  std::fill(types.begin() + (second - ids.begin()), types.begin() + (out - ids.begin()), 1);
  std::fill(out, ids.end(), padding_);
  return static_cast<int32_t>(out - ids.begin());
}

PairBatches::PairBatches(const SentencePairs& pairs, int64_t length, const Masker& masker, int64_t batch_size,
                         uint64_t seed, Walk walk, Where where)
    : MaskedBatches(pairs.count(), length, masker, batch_size, seed, walk, where), pairs_(pairs) {
  require(segment_length(length) == pairs.segment_length(), "pair_batches", where, "pairs of ", length,
          " tokens are made of segments of ", segment_length(length), ", given ", pairs.segment_length());
}

int32_t PairBatches::write(const Draw& draw, std::span<int64_t> ids, Batch& batch) const {
  const SentencePair pair = pairs_.pair(draw.sample, draw.epoch);
  batch.kinds.push_back(static_cast<int64_t>(pair.kind));
  batch.types.resize(batch.types.size() + ids.size());
  return pairs_.write(pair, ids, std::span(batch.types).last(ids.size()));
}

}  // namespace cinta::data
