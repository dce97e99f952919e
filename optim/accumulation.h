// Gradient accumulation that equals one big batch: every micro-batch hands in the SUM of its losses, and the seed of
// its backward is 1 / (items of all micro-batches of the step). A mean of means is another number as soon as one
// micro-batch has more items (real tokens, masked positions) than another.
//
//   const Tensor seed = optim::accumulation_seed(items);
//   optimizer.zero_gradients();
//   for (const Batch& batch : window) autograd::backward(loss_sum(batch), {.seeds = {seed}});
//   optimizer.step();
#pragma once
#include <span>

#include "cinta/core/tensor.h"

namespace cinta::optim {

/// 1 / (sum of `items`) as a tensor without dimensions: the seed for the backward of each micro-batch of a step, given
/// how many items each one sums over. A step with no items at all has seed 0: its gradients are exactly zero, not NaN.
/// Throws ValueError for an empty list, a negative count or a sum beyond 63 bits.
Tensor accumulation_seed(std::span<const int64_t> items, Dtype dtype = Dtype::f32, Device device = cpu,
                         Where where = Where::current());

}  // namespace cinta::optim
