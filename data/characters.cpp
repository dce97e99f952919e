// Bytes to numbers and back, and windows over the numbers.
#include "cinta/data/characters.h"

#include "cinta/core/random.h"

namespace cinta::data {
namespace {

/// Windows that fit wherever an epoch's first one begins, each with the token that follows it.
int64_t count_windows(int64_t tokens, int64_t length, Where where) {
  require(length > 0, "windows", where, "length must be positive, given ", length);
  require(tokens > 2 * length, "windows", where, tokens, " tokens are fewer than two windows of ", length,
          " and the token after them");
  return (tokens - 1) / length - 1;
}

}  // namespace

Characters::Characters(std::string_view text, Where where) {
  require(!text.empty(), "characters", where, "an empty text has no characters");
  ids_.fill(-1);
  for (char c : text) ids_[static_cast<unsigned char>(c)] = 0;
  for (int byte = 0; byte < 256; ++byte)
    if (int32_t& id = ids_[static_cast<size_t>(byte)]; id == 0) {
      id = static_cast<int32_t>(bytes_.size());
      bytes_ += static_cast<char>(byte);
    }
}

std::vector<int32_t> Characters::encode(std::string_view text, Where where) const {
  std::vector<int32_t> out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    require(ids_[byte] >= 0, "characters", where, "byte ", i, ": value ", int{byte}, " is not among the ", size(),
            " learnt ones");
    out.push_back(ids_[byte]);
  }
  return out;
}

std::string Characters::decode(std::span<const int32_t> ids, Where where) const {
  std::string out;
  for (int32_t id : ids) {
    require(id >= 0 && id < size(), "characters", where, "token number ", id, " outside [0, ", size(), ")");
    out += bytes_[static_cast<size_t>(id)];
  }
  return out;
}

WindowBatches::WindowBatches(std::span<const int32_t> tokens, int64_t length, int64_t batch_size, uint64_t seed,
                             Where where)
    : tokens_(tokens),
      length_(length),
      seed_(seed),
      order_(count_windows(static_cast<int64_t>(tokens.size()), length, where), batch_size, seed, where) {}

Batch WindowBatches::batch(int64_t step) const {
  Batch out;
  out.step = step;
  for (const auto& [window, epoch] : order_.draws(step)) {
    const uint32_t word = random_word(seed_, stream_id("windows.start"), epoch, 0);
    const int64_t start =
        window * length_ + static_cast<int64_t>(uint64_t{word} * static_cast<uint64_t>(length_) >> 32);
    const auto begin = tokens_.begin() + start;
    out.ids.insert(out.ids.end(), begin, begin + length_);
    out.labels.insert(out.labels.end(), begin + 1, begin + length_ + 1);
    out.lengths.push_back(static_cast<int32_t>(length_));
  }
  out.items = static_cast<int64_t>(out.labels.size());
  return out;
}

}  // namespace cinta::data
