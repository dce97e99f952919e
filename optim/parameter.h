// Parameter: what a model hands to an optimizer for each of its weights.
#pragma once
#include <string>

#include "cinta/core/tensor.h"

namespace cinta::optim {

struct Parameter {
  std::string name;  ///< unique in the model, as in its files: "encoder.layer.0.output.dense.weight"
  /// A leaf of the tape (require_gradient) is trained, a tensor without a seat is frozen. It has its storage to itself;
  /// a tied weight appears as copies of one handle, under one name or several.
  Tensor tensor;
  bool decay = true;       ///< false for biases and norms: no weight decay
  float rate_factor = 1;   ///< this parameter's rate is the step's rate times this
  std::string block = {};  ///< parameters of one block lie together in one unit
};

}  // namespace cinta::optim
