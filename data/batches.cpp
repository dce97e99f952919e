// Samples gathered into host batches.
#include "cinta/data/batches.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace cinta::data {

ExampleBatches::ExampleBatches(const Examples& examples, int64_t batch_size, uint64_t seed, Where where)
    : examples_(examples), order_(examples.count, batch_size, seed, where) {}

Batch ExampleBatches::batch(int64_t step) const {
  Batch out;
  out.step = step;
  for (const Draw& draw : order_.draws(step)) {
    const auto begin = examples_.inputs.begin() + draw.sample * examples_.features;
    out.inputs.insert(out.inputs.end(), begin, begin + examples_.features);
    out.labels.push_back(examples_.labels[static_cast<size_t>(draw.sample)]);
  }
  out.items = static_cast<int64_t>(out.labels.size());
  return out;
}

MaskedBatches::MaskedBatches(int64_t count, int64_t length, const Masker& masker, int64_t batch_size, uint64_t seed,
                             Walk walk, Where where, std::span<const int32_t> lengths)
    : masker_(masker),
      count_(count),
      length_(length),
      batch_size_(batch_size),
      walk_(walk),
      order_(count, batch_size, seed, where, lengths) {}

MaskedBatches::MaskedBatches(const Sequences& sequences, const Masker& masker, int64_t batch_size, uint64_t seed,
                             Walk walk, Where where, Balance balance)
    : MaskedBatches(sequences.count, sequences.length, masker, batch_size, seed, walk, where,
                    balance == Balance::tokens ? sequences.lengths : std::span<const int32_t>()) {
  require(walk == Walk::shuffled || balance == Balance::samples, "masked_batches", where,
          "batches of about as many tokens are for shuffled sequences; in order they keep their places");
  sequences_ = &sequences;
}

int32_t MaskedBatches::write(const Draw& draw, std::span<int64_t> ids, Batch&) const {
  std::ranges::copy(sequences_->ids.subspan(static_cast<size_t>(draw.sample * length_), ids.size()), ids.begin());
  return sequences_->lengths[static_cast<size_t>(draw.sample)];
}

Batch MaskedBatches::batch(int64_t step) const {
  const int64_t capacity = masker_.capacity(length_);
  std::vector<Draw> draws;
  if (walk_ == Walk::shuffled) draws = order_.draws(step);
  for (int64_t i = step * batch_size_; walk_ == Walk::in_order && i < (step + 1) * batch_size_; ++i)
    draws.push_back({i, 0});
  Batch out;
  out.step = step;
  out.ids.resize(static_cast<size_t>(batch_size_ * length_));
  out.rows.resize(static_cast<size_t>(batch_size_ * capacity));
  out.labels.resize(out.rows.size(), ignored_label);
  for (int64_t b = 0; b < batch_size_; ++b) {
    const Draw draw = draws[static_cast<size_t>(b)];
    const bool absent = draw.sample >= count_;
    const std::span<int64_t> ids(out.ids.data() + b * length_, static_cast<size_t>(length_));
    const std::span<int64_t> places(out.rows.data() + b * capacity, static_cast<size_t>(capacity));
    const std::span<int64_t> labels(out.labels.data() + b * capacity, places.size());
    const int32_t length = write(absent ? Draw{0, 0} : draw, ids, out);
    out.lengths.push_back(absent ? 1 : length);
    if (!absent) out.items += masker_.mask(ids, draw.epoch, draw.sample, places, labels);
    if (absent && !out.kinds.empty()) out.kinds.back() = ignored_label;
    for (int64_t& place : places) place += b * length_;
  }
  return out;
}

UnigramBaseline unigram_baseline(const Sequences& train, const Sequences& held_out, const Vocabulary& vocabulary) {
  std::vector<int64_t> seen(static_cast<size_t>(vocabulary.size()), 1), asked(seen.size());
  for (int32_t id : train.ids) ++seen[static_cast<size_t>(id)];
  for (int32_t id : held_out.ids) ++asked[static_cast<size_t>(id)];
  int64_t seen_total = 0, asked_total = 0;
  size_t most = 0;
  for (size_t id = 0; id < seen.size(); ++id) {
    if (vocabulary.is_special(static_cast<int64_t>(id))) seen[id] = asked[id] = 0;
    seen_total += seen[id], asked_total += asked[id];
    if (seen[id] > seen[most]) most = id;
  }
  UnigramBaseline out;
  if (asked_total == 0) return out;
  for (size_t id = 0; id < seen.size(); ++id)
    if (asked[id] > 0)
      out.loss -=
          static_cast<double>(asked[id]) * std::log(static_cast<double>(seen[id]) / static_cast<double>(seen_total));
  out.loss /= static_cast<double>(asked_total);
  out.accuracy = static_cast<double>(asked[most]) / static_cast<double>(asked_total);
  return out;
}

}  // namespace cinta::data
