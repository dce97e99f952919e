// SGD over one fused row, or with ops.
#include "cinta/optim/sgd.h"

#include "cinta/ops/elementwise.h"
#include "cinta/optim/composed_update.h"

namespace cinta::optim {
namespace {

const SgdOptions& checked(const SgdOptions& options, Where where) {
  require(options.momentum >= 0 && options.momentum < 1, "sgd", where, "momentum is in [0, 1): ", options.momentum);
  require(!options.nesterov || options.momentum > 0, "sgd", where, "nesterov needs momentum above 0");
  return options;
}

std::vector<std::string> states(const SgdOptions& options) {
  return options.momentum > 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{};
}

}  // namespace

Sgd::Sgd(std::vector<Parameter> parameters, const SgdOptions& options, Where where)
    : Optimizer(std::move(parameters), {"sgd", checked(options, where).rate, options.weight_decay, states(options)},
                where),
      constants_{options.momentum, options.nesterov} {}

void Sgd::sweep(const Group& group, const kernels::Segments& segments, const Tensor& scalars) {
  if (!kernels::sgd.has(group.weights.device())) {
    const auto [momentum, nesterov] = constants_;
    return update_composed(group, scalars, weight_decay(), [=](const Update& of) -> std::vector<Tensor> {
      const Tensor g = of.gradient + of.weights * of.decay;
      if (of.state.empty()) return {of.weights - of.rate * g};
      const Tensor buffer = of.state[0] * momentum + g;
      return {of.weights - of.rate * (nesterov ? g + buffer * momentum : buffer), buffer};
    });
  }
  kernels::sgd(group.weights.device(), group.weights, group.shadow,
               group.state.empty() ? View{} : group.state[0].view(), group.gradients->flat(), segments, scalars,
               constants_);
}

}  // namespace cinta::optim
