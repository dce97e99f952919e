// Copying what is not padding.
#include "cinta/data/packing.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace cinta::data {
namespace {

void check(const Batch& batch, int64_t multiple) {
  constexpr const char* op = "packed";
  constexpr int64_t most = std::numeric_limits<int32_t>::max();  // which offsets count to
  require(multiple >= 1 && multiple <= most, op, Where(), "multiple lies in [1, ", most, "], given ", multiple);
  require(!batch.lengths.empty() && batch.offsets.empty(), op, Where(),
          "a batch of samples with lengths, not packed yet");
  const size_t samples = batch.lengths.size(), tokens = batch.ids.size();
  require(tokens % samples == 0 && (batch.types.empty() || batch.types.size() == tokens), op, Where(),
          "as many ids for each sample, and types for all or none, given ", samples, " samples, ", tokens, " ids, ",
          batch.types.size(), " types");
  const auto length = static_cast<int64_t>(tokens / samples);
  for (size_t b = 0; b < samples; ++b)
    require(batch.lengths[b] > 0 && batch.lengths[b] <= length, op, Where(), "1 to ", length,
            " tokens in each sample, given ", batch.lengths[b], " in sample ", b);
  for (const int64_t row : batch.rows)
    require(row >= 0 && row < static_cast<int64_t>(tokens) &&
                row % length < batch.lengths[static_cast<size_t>(row / length)],
            op, Where(), "rows of tokens that are no padding, given ", row, " in samples of ", length);
}

}  // namespace

Batch packed(const Batch& batch, int64_t multiple) {
  check(batch, multiple);
  const auto samples = static_cast<int64_t>(batch.lengths.size());
  const int64_t length = static_cast<int64_t>(batch.ids.size()) / samples;
  Batch out = batch;
  out.offsets.assign(1, 0);
  for (int32_t tokens : batch.lengths) out.offsets.push_back(out.offsets.back() + tokens);
  const int64_t all = (out.offsets.back() + multiple - 1) / multiple * multiple;
  out.ids.assign(static_cast<size_t>(all), 0);
  out.places = out.ids;
  if (!batch.types.empty()) out.types = out.ids;
  for (int64_t b = 0; b < samples; ++b) {
    const auto from = b * length, tokens = int64_t{batch.lengths[static_cast<size_t>(b)]};
    const auto to = int64_t{out.offsets[static_cast<size_t>(b)]};
    std::copy_n(batch.ids.begin() + from, tokens, out.ids.begin() + to);
    if (!batch.types.empty()) std::copy_n(batch.types.begin() + from, tokens, out.types.begin() + to);
    std::iota(out.places.begin() + to, out.places.begin() + to + tokens, 0);
  }
  for (int64_t& row : out.rows) row = out.offsets[static_cast<size_t>(row / length)] + row % length;
  return out;
}

}  // namespace cinta::data
