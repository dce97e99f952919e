// An update rule written with ops, for devices that lack its sweep (adamw.h, sgd.h).
#pragma once
#include "cinta/core/callback.h"
#include "cinta/optim/unit.h"

namespace cinta::optim {

/// What a rule reads of one parameter; numbers are tensors of one element.
struct Update {
  Tensor weights, gradient;  ///< the gradient is clipped and unscaled
  std::vector<Tensor> state;
  Tensor rate, correction1, correction2;
  double decay;
};

/// Replaces the weights, the states and the shadow of each parameter of `group` by what `rule` makes of them: the new
/// weights, then the new states. `scalars` is kernels::SweepScalar; a step that it skips writes what was there.
void update_composed(const Group& group, const Tensor& scalars, double weight_decay,
                     const Callback<std::vector<Tensor>(const Update&)>& rule);

}  // namespace cinta::optim
