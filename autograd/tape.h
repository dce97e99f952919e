// Walking the tape: backward() fills the gradients of leaves, grad() returns the gradients of chosen tensors.
// What a walk adds up lies in the slots that it passes (node.h): one thread at a time walks graphs that share a leaf.
#pragma once
#include <optional>

#include "cinta/autograd/node.h"

namespace cinta::autograd {

struct WalkOptions {
  /// Keep the nodes, so that the same graph can be walked again. Otherwise memory falls as the walk passes.
  bool retain_graph = false;
  /// Record the walk itself, so that its results can be differentiated. Implies retain_graph.
  bool create_graph = false;
  /// No input of grad() depends on another: the walk ends at them.
  bool stop_at_inputs = false;
  /// Gradients of the roots; empty: 1 for a root of one element.
  std::vector<Tensor> seeds = {};
};

/// Adds d(root)/d(leaf), weighted by the seed, to the gradient of every leaf that root depends on. Nodes run in the
/// reverse order of recording; a leaf's hooks fire once, when its last contribution has landed. After an error in
/// the middle of the walk the leaves it was to reach have no gradient.
void backward(const Tensor& root, const WalkOptions& options = {}, Where where = Where::current());

/// Gradients of the sum of `outputs` (weighted by the seeds) with respect to `inputs`, in their order; an empty tensor
/// where an input has no influence. Touches no leaf's gradient.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const WalkOptions& options = {}, Where where = Where::current());

}  // namespace cinta::autograd
