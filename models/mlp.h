// A multi-layer perceptron: linear layers with an activation between them.
#pragma once
#include <memory>

#include "cinta/models/layers.h"

namespace cinta::models {

class Mlp : public Module {
 public:
  /// `sizes` are the widths from input to output, at least two, e.g. {64, 128, 64, 10}. Weights start uniform in
  /// +-1/sqrt(in), biases at 0.
  explicit Mlp(const std::vector<int64_t>& sizes, uint64_t seed = 0, Activation activation = Activation::relu,
               Device device = cpu, Where where = Where::current());
  /// x[.., sizes.front()] -> [.., sizes.back()]
  Tensor operator()(const Tensor& x, Where where = Where::current()) const;

 private:
  std::vector<std::shared_ptr<Linear>> layers_;
  Activation activation_;
};

}  // namespace cinta::models
