// Finite differences: what the tape computes against what the function does.
#pragma once
#include "cinta/autograd/node.h"

namespace cinta::autograd {

using TensorFunction = Callback<Tensor(const std::vector<Tensor>&)>;

/// Largest difference, relative to 1 + |value|, between the tape's gradient of a fixed random weighting of f(inputs)
/// and central differences of width 2*step, over every element of every floating-point input. Wants f64 inputs in
/// host-accessible memory (Device reference); a right gradient gives about 1e-8.
double gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, double step = 1e-5,
                 Where where = Where::current());

/// The same for the gradient of the gradient: f's gradients, weighted, are checked as a function of the inputs.
double second_gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, double step = 1e-5,
                        Where where = Where::current());

}  // namespace cinta::autograd
