// Pairs of segments for next-sentence prediction (Devlin et al. 2018, section 3.1): the second follows the first in its
// document, or half of the time it was drawn from another (of a single document: from elsewhere in it). Pure functions
// of (seed, epoch, sample).
#pragma once
#include "cinta/data/batches.h"

namespace cinta::data {

/// What the pair is, numbered as BERT's next-sentence head numbers it.
enum class SecondSegment : int64_t { follows = 0, drawn = 1 };

struct SentencePair {
  int64_t first, second;  ///< numbers of sequences
  SecondSegment kind;
};

/// The length of sequences two of which make a pair of `length` tokens, [CLS] first [SEP] second [SEP].
inline int64_t segment_length(int64_t length) { return (length - 3) / 2 + 2; }

class SentencePairs {
 public:
  /// A sample is a sequence that another follows in its document. `segments` must outlive this. Throws ValueError,
  /// which calls them `text`, unless there are samples and a segment to draw.
  SentencePairs(const Sequences& segments, const Vocabulary& vocabulary, uint64_t seed, const char* text = "the text",
                Where where = Where::current());
  int64_t count() const { return static_cast<int64_t>(firsts_.size()); }
  SentencePair pair(int64_t sample, uint32_t epoch) const;
  int64_t segment_length() const { return segments_.length; }
  /// Lays the pair out in `ids` and `types`, padded to their end. Returns its number of tokens.
  int32_t write(const SentencePair& pair, std::span<int64_t> ids, std::span<int64_t> types) const;

 private:
  const Sequences& segments_;
  uint64_t seed_;
  int64_t begin_, end_, padding_;  // [CLS], [SEP], [PAD]
  std::vector<int64_t> firsts_;
};

/// Masked pairs: what MaskedBatches gives, of pairs of `length` tokens, with `types`, and in `kinds` a SecondSegment a
/// sample (absent samples are ignored). `pairs` and `masker` must outlive this.
class PairBatches final : public MaskedBatches {
 public:
  PairBatches(const SentencePairs& pairs, int64_t length, const Masker& masker, int64_t batch_size, uint64_t seed,
              Walk walk = Walk::shuffled, Where where = Where::current());

 private:
  int32_t write(const Draw& draw, std::span<int64_t> ids, Batch& batch) const override;
  const SentencePairs& pairs_;
};

}  // namespace cinta::data
