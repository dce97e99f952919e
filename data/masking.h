// The masked-language-model task (Devlin et al. 2018): some tokens of a sequence become targets; of these 80 % are
// replaced by [MASK], 10 % by a random token, 10 % stay. A pure function of (seed, epoch, sample, place): resumed,
// sharded and prefetched runs see the same masks.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "cinta/core/error.h"
#include "cinta/data/vocabulary.h"

namespace cinta::data {

struct MaskingOptions {
  double rate = 0.15;     ///< share of a sequence's ordinary tokens that become targets
  double replaced = 0.8;  ///< share of the targets that become [MASK]
  double random = 0.1;    ///< share of the targets that become any ordinary token
};

/// The label of a row that the loss leaves out.
inline constexpr int64_t ignored_label = -100;

class Masker {
 public:
  /// Throws ValueError for shares outside [0, 1], a vocabulary without [MASK] or one of special tokens only.
  Masker(const Vocabulary& vocabulary, uint64_t seed, MaskingOptions options = {}, Where where = Where::current());

  /// Targets that a sequence of `length` places gets at most (two of them are [CLS] and [SEP]): the fixed number of
  /// rows each sample has in a batch.
  int64_t capacity(int64_t length) const;

  /// Masks one sequence in place. `labels` and `places` have `capacity` seats: the token that stood at a target, and
  /// its place in the sequence, ascending; seats left over hold `ignored_label` and place 0. Special tokens are never
  /// targets. Of n ordinary tokens, round(rate * n) become targets, at least one. Returns their number.
  int64_t mask(std::span<int64_t> ids, uint32_t epoch, int64_t sample, std::span<int64_t> places,
               std::span<int64_t> labels) const;

 private:
  int64_t targets(int64_t ordinary) const;

  MaskingOptions options_;
  uint64_t seed_;
  int32_t mask_;
  std::vector<bool> special_;      ///< by token number
  std::vector<int32_t> ordinary_;  ///< the tokens that a random replacement may be
};

}  // namespace cinta::data
