// The batch sources of the reference runs.
#pragma once
#include <cstdint>

#include "cinta/data/examples.h"
#include "cinta/data/loader.h"

namespace cinta::data {

/// Shuffled rows of a labelled set; `examples` must outlive this.
class ExampleBatches : public BatchSource {
 public:
  ExampleBatches(const Examples& examples, int64_t batch_size, uint64_t seed, Where where = Where::current());
  Batch batch(int64_t step) const override;
  int64_t steps_per_epoch() const { return order_.steps_per_epoch(); }

 private:
  const Examples& examples_;
  Order order_;
};

}  // namespace cinta::data
