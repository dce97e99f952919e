// One parameter after the other, with memory for each result.
#include "cinta/optim/composed_update.h"

#include "cinta/autograd/autocast.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/optimizer.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/shape.h"

namespace cinta::optim {

void update_composed(const Group& group, const Tensor& scalars, double weight_decay,
                     const Callback<std::vector<Tensor>(const Update&)>& rule) {
  const autograd::NoGrad off;
  const autograd::AutocastScope as_they_are(std::nullopt);
  const auto number = [&](kernels::SweepScalar which) {
    return cast(scalars.with_layout({1}, {1}, which), group.weights.dtype());
  };
  const Tensor factor = number(kernels::sweep_gradient_factor), rate = number(kernels::sweep_rate),
               correction1 = number(kernels::sweep_correction1), correction2 = number(kernels::sweep_correction2),
               runs = not_equal(factor, 0);
  for (const Range& range : group.ranges) {
    const auto of = [&](const Tensor& flat) { return detach(Group::slice(flat, range)); };
    std::vector<Tensor> live{of(group.weights)};
    for (const Tensor& state : group.state) live.push_back(of(state));
    const std::vector<Tensor> fresh = rule({.weights = live[0],
                                            .gradient = of(group.gradients->flat()) * factor,
                                            .state = {live.begin() + 1, live.end()},
                                            .rate = rate * range.parameter.rate_factor,
                                            .correction1 = correction1,
                                            .correction2 = correction2,
                                            .decay = range.parameter.decay ? weight_decay : 0});
    const Device device = group.weights.device();
    for (size_t i = 0; i < live.size(); ++i) kernels::copy(device, live[i], where(runs, fresh[i], live[i]));
    if (group.shadow) kernels::copy(device, of(group.shadow), live[0]);
  }
}

}  // namespace cinta::optim
