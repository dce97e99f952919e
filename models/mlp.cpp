// The perceptron's layers in order.
#include "cinta/models/mlp.h"

#include <cmath>

namespace cinta::models {

Mlp::Mlp(const std::vector<int64_t>& sizes, uint64_t seed, Activation activation, Device device, Where where)
    : activation_(activation) {
  require<ShapeError>(sizes.size() >= 2, "mlp", where, "at least an input and an output size, given ", sizes.size());
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    require<ShapeError>(sizes[i] > 0 && sizes[i + 1] > 0, "mlp", where, "sizes are positive, given ", sizes[i], " and ",
                        sizes[i + 1]);
    layers_.push_back(std::make_shared<Linear>(
        sizes[i], sizes[i + 1], Init{Init::uniform, 1 / std::sqrt(static_cast<double>(sizes[i]))}, device));
    add_child("layers." + std::to_string(i), *layers_.back());
  }
  initialize(seed);
}

Tensor Mlp::operator()(const Tensor& x, Where where) const {
  NameScope scope("mlp");
  Tensor h = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    NameScope layer("layers." + std::to_string(i));
    h = (*layers_[i])(h, i + 1 < layers_.size() ? activation_ : Activation::none, where);
  }
  return h;
}

}  // namespace cinta::models
