// AdamW over one fused row, or with ops.
#include "cinta/optim/adamw.h"

#include <cmath>

#include "cinta/ops/elementwise.h"
#include "cinta/optim/composed_update.h"

namespace cinta::optim {
namespace {

const AdamWOptions& checked(const AdamWOptions& options, Where where) {
  for (const double beta : {options.beta1, options.beta2})
    require(beta >= 0 && beta < 1, "adamw", where, "betas are in [0, 1): ", beta);
  require(std::isfinite(options.eps) && static_cast<float>(options.eps) > 0, "adamw", where,
          "eps is positive in f32: ", options.eps);
  return options;
}

}  // namespace

AdamW::AdamW(std::vector<Parameter> parameters, const AdamWOptions& options, Where where)
    : Optimizer(std::move(parameters),
                {.name = "adamw",
                 .rate = checked(options, where).rate,
                 .weight_decay = options.weight_decay,
                 .states = {"exp_avg", "exp_avg_sq"},
                 .beta1 = options.beta1,
                 .beta2 = options.beta2},
                where),
      constants_{options.beta1, options.beta2, options.eps} {}

void AdamW::sweep(const Group& group, const kernels::Segments& segments, const Tensor& scalars) {
  if (!kernels::adamw.has(group.weights.device())) {
    const auto [beta1, beta2, eps] = constants_;
    return update_composed(group, scalars, weight_decay(), [=](const Update& of) -> std::vector<Tensor> {
      const Tensor &g = of.gradient, m = of.state[0] * beta1 + g * (1 - beta1),
                   v = of.state[1] * beta2 + g * g * (1 - beta2);
      const Tensor direction = m / of.correction1 / (sqrt(v / of.correction2) + eps);
      return {of.weights - of.rate * (of.weights * of.decay + direction), m, v};
    });
  }
  kernels::adamw(group.weights.device(), group.weights, group.shadow, group.state[0], group.state[1],
                 group.gradients->flat(), segments, scalars, constants_);
}

}  // namespace cinta::optim
