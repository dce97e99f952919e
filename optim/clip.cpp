// The norm over all units, and the factor that the sweep takes.
#include "cinta/optim/clip.h"

#include "cinta/backends/kernels/optimizer.h"
#include "cinta/backends/kernels/reduce.h"
#include "cinta/core/context.h"

namespace cinta::optim {

GlobalNorm::GlobalNorm(int64_t buffers, Device device) {
  CategoryScope scope(Category::workspace);
  squares_ = empty({buffers}, Dtype::f64, device);
  total_ = empty({1}, Dtype::f64, device);
  norm_ = empty({1}, Dtype::f32, device);
}

const Tensor& GlobalNorm::measure(const std::vector<Unit>& units, const Tensor& scalars, const Tensor& loss_scale,
                                  float max_norm) {
  const Device device = norm_.device();
  int64_t buffer = 0;
  for (const Unit& unit : units)
    for (const Group& group : unit.groups())
      if (group.trained)
        kernels::sum_of_squares(device, squares_.with_layout({1}, {1}, buffer++), group.gradients->flat());
  kernels::sum(device, total_, squares_, 0.0f);
  kernels::clip_factor(device, scalars, norm_, total_, loss_scale.view(), max_norm);
  return norm_;
}

}  // namespace cinta::optim
