// AdamW over one fused row.
#include "cinta/optim/adamw.h"

#include <cmath>

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

void AdamW::sweep(const Group& group, const kernels::Segments& segments, View scalars) {
  kernels::adamw(group.weights.device(), group.weights, group.shadow, group.state[0], group.state[1],
                 group.gradients->flat(), segments, scalars, constants_);
}

}  // namespace cinta::optim
