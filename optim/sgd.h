// SGD with momentum (Polyak 1964), plain or Nesterov's (Sutskever et al. 2013), as PyTorch defines it: the rate
// multiplies the momentum buffer, weight decay is added to the gradient.
#pragma once
#include "cinta/optim/optimizer.h"

namespace cinta::optim {

struct SgdOptions {
  double rate = 1e-2, momentum = 0, weight_decay = 0;
  bool nesterov = false;
};

/// State: "momentum_buffer", only with momentum.
class Sgd final : public Optimizer {
 public:
  /// Throws ValueError unless the rate and decay are finite and not negative and momentum is in [0, 1), above 0 with
  /// nesterov.
  explicit Sgd(std::vector<Parameter> parameters, const SgdOptions& options = {}, Where where = Where::current());

 private:
  void sweep(const Group& group, const kernels::Segments& segments, const Tensor& scalars) override;
  kernels::Sgd constants_;
};

}  // namespace cinta::optim
