// What a batch holds decides what the model is given.
#include "cinta/train/token_batch.h"

namespace cinta::train {

models::TokenBatch token_batch(const data::Batch& batch, Device device) {
  const auto samples = static_cast<int64_t>(batch.lengths.size()), tokens = static_cast<int64_t>(batch.ids.size());
  const bool packed = !batch.offsets.empty();
  require(samples > 0 && (packed || tokens % samples == 0), "token_batch", Where(),
          "samples with lengths, padded to one length or packed, given ", samples, " samples, ", tokens, " ids");
  const Shape shape = packed ? Shape{1, tokens} : Shape{samples, tokens / samples};
  models::TokenBatch out{.ids = from_values(batch.ids, shape, device)};
  if (!batch.types.empty()) out.types = from_values(batch.types, shape, device);
  if (packed) {
    out.offsets = from_values(batch.offsets, {samples + 1}, device);
    out.places = from_values(batch.places, shape, device);
  } else {
    out.lengths = from_values(batch.lengths, {samples}, device);
  }
  return out;
}

}  // namespace cinta::train
