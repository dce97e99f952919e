// The smallest tokenizer: every distinct byte of a text is a token. For small causal language models.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cinta/core/error.h"
#include "cinta/data/loader.h"

namespace cinta::data {

class Characters {
 public:
  /// Learns the distinct bytes of a text, numbered in ascending order. Throws ValueError for an empty text.
  explicit Characters(std::string_view text, Where where = Where::current());
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  /// The bytes in the order of their numbers.
  const std::string& bytes() const { return bytes_; }
  /// Throws ValueError naming the offset of a byte that was not learnt.
  std::vector<int32_t> encode(std::string_view text, Where where = Where::current()) const;
  std::string decode(std::span<const int32_t> ids, Where where = Where::current()) const;

 private:
  std::string bytes_;
  std::array<int32_t, 256> ids_;
};

/// Windows of a token stream for a causal model: ids [samples, length], labels the tokens that follow. An epoch sees
/// each window of the stream once, in a seeded order; where the windows begin is drawn anew for each epoch. `tokens`
/// must outlive this.
class WindowBatches : public BatchSource {
 public:
  /// Throws ValueError when the stream is shorter than two windows.
  WindowBatches(std::span<const int32_t> tokens, int64_t length, int64_t batch_size, uint64_t seed,
                Where where = Where::current());
  Batch batch(int64_t step) const override;
  double epoch(int64_t step) const override { return order_.epoch(step); }
  int64_t steps_per_epoch() const { return order_.steps_per_epoch(); }

 private:
  std::span<const int32_t> tokens_;
  int64_t length_;
  uint64_t seed_;
  Order order_;
};

}  // namespace cinta::data
