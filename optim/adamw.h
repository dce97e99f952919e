// AdamW: Adam with decoupled weight decay (Loshchilov, Hutter 2019).
#pragma once
#include "cinta/optim/optimizer.h"

namespace cinta::optim {

struct AdamWOptions {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
};

/// State: "exp_avg" and "exp_avg_sq", the running means of the gradient and of its square.
class AdamW final : public Optimizer {
 public:
  /// Throws ValueError unless the rate and decay are finite and not negative, betas in [0, 1) and eps positive in f32
  /// (with eps 0 a weight that never had a gradient would become NaN).
  explicit AdamW(std::vector<Parameter> parameters, const AdamWOptions& options = {}, Where where = Where::current());

 private:
  void sweep(const Group& group, const kernels::Segments& segments, const Tensor& scalars) override;
  kernels::AdamW constants_;
};

}  // namespace cinta::optim
