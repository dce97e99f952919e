// Targets are drawn without replacement by the first swaps of a Fisher-Yates shuffle, each from its own Philox block.
#include "cinta/data/masking.h"

#include <algorithm>
#include <cmath>

#include "cinta/core/random.h"

namespace cinta::data {

Masker::Masker(const Vocabulary& vocabulary, uint64_t seed, MaskingOptions options, Where where)
    : options_(options), seed_(seed), mask_(vocabulary.id("[MASK]", where)) {
  require(options.rate > 0 && options.rate <= 1, "masking", where, "rate must lie in (0, 1], given ", options.rate);
  require(options.replaced >= 0 && options.random >= 0 && options.replaced + options.random <= 1, "masking", where,
          "shares must not be negative nor exceed 1 together, given replaced ", options.replaced, " and random ",
          options.random);
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    special_.push_back(vocabulary.is_special(id));
    if (!special_.back()) ordinary_.push_back(static_cast<int32_t>(id));
  }
  require(!ordinary_.empty(), "masking", where, "the vocabulary has special tokens only");
}

int64_t Masker::targets(int64_t ordinary) const {
  return std::min(ordinary, std::max<int64_t>(1, std::llround(options_.rate * static_cast<double>(ordinary))));
}

int64_t Masker::capacity(int64_t length) const { return targets(std::max<int64_t>(length - 2, 0)); }

int64_t Masker::mask(std::span<int64_t> ids, uint32_t epoch, int64_t sample, std::span<int64_t> places,
                     std::span<int64_t> labels) const {
  std::fill(places.begin(), places.end(), 0);
  std::fill(labels.begin(), labels.end(), ignored_label);
  std::vector<int64_t> candidates;
  for (size_t i = 0; i < ids.size(); ++i) {
    require(ids[i] >= 0 && ids[i] < static_cast<int64_t>(special_.size()), "masking", Where(), "token number ", ids[i],
            " outside [0, ", special_.size(), ")");
    if (!special_[static_cast<size_t>(ids[i])]) candidates.push_back(static_cast<int64_t>(i));
  }
  const auto count = std::min(static_cast<size_t>(targets(static_cast<int64_t>(candidates.size()))), places.size());
  for (size_t i = 0; i < count; ++i) {
    const uint64_t block = static_cast<uint64_t>(sample) << 24 | i;
    const PhiloxBlock words = random_block(seed_, stream_id("masking.places"), epoch, block);
    std::swap(candidates[i], candidates[i + to_below(words[0], words[1], candidates.size() - i)]);
  }
  std::sort(candidates.begin(), candidates.begin() + static_cast<ptrdiff_t>(count));
  for (size_t i = 0; i < count; ++i) {
    places[i] = candidates[i];
    int64_t& token = ids[static_cast<size_t>(places[i])];
    labels[i] = token;
    const uint64_t block = static_cast<uint64_t>(sample) << 24 | static_cast<uint64_t>(places[i]);
    const PhiloxBlock words = random_block(seed_, stream_id("masking.tokens"), epoch, block);
    const double chance = words[0] * 0x1p-32;
    if (chance < options_.replaced)
      token = mask_;
    else if (chance < options_.replaced + options_.random)
      token = ordinary_[to_below(words[1], words[2], ordinary_.size())];
  }
  return static_cast<int64_t>(count);
}

}  // namespace cinta::data
