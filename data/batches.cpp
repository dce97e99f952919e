// Samples gathered into host batches.
#include "cinta/data/batches.h"

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

}  // namespace cinta::data
