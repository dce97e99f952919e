// Global norm clipping (Pascanu, Mikolov, Bengio 2013), folded into the optimizer's sweep: the gradients are read once
// for their norm and never rescaled in memory; the sweep multiplies by the factor found here.
#pragma once
#include <vector>

#include "cinta/optim/unit.h"

namespace cinta::optim {

class GlobalNorm {
 public:
  /// Buffers for the norm of `buffers` flat gradients on `device`.
  GlobalNorm(int64_t buffers, Device device);
  /// Finds the norm of all gradients of `units`, f32[1], and writes min(1, max_norm / (norm + 1e-6)) as the gradient
  /// factor into `scalars` (backends/kernels/optimizer.h); max_norm 0 only measures. Where the gradients are those of a
  /// loss times loss_scale (f32[1], or no tensor), both are of the plain loss. A norm that is not finite writes
  /// 0, which makes the sweep skip. The host waits for nothing. The returned tensor is written again by the next call.
  /// Sums are f64, one a buffer, added in the order of the units.
  const Tensor& measure(const std::vector<Unit>& units, const Tensor& scalars, const Tensor& loss_scale,
                        float max_norm);
  /// Sums of squares of the flat gradients, f64[buffers], of the last measurement.
  const Tensor& squares() const { return squares_; }

 private:
  Tensor squares_, total_, norm_;
};

}  // namespace cinta::optim
