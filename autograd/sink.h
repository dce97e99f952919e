// Sink: where the gradient of one input goes. An op that can add in place asks for the target; any other puts a tensor.
#pragma once
#include "cinta/autograd/node.h"

namespace cinta::autograd {

class Sink {
 public:
  Sink() = default;
  explicit Sink(Slot* slot) : slot_(slot) {}
  /// False iff nobody wants this gradient: do not compute it.
  bool wanted() const { return slot_ != nullptr; }
  /// Of the input, and so of its gradient.
  Dtype dtype() const { return slot_->dtype; }
  /// Whether both are of one tensor.
  bool same(const Sink& other) const { return slot_ && slot_ == other.slot_; }
  /// Contributes `gradient` (of the input's shape).
  void put(Tensor gradient);

  struct Target {
    Tensor destination;
    float beta;  ///< 0: overwrite, the old values mean nothing; 1: add
  };
  /// Memory to write (beta 0) or add (beta 1) this contribution to, contiguous, of the given shape and of the input's
  /// own type, which autocast may have shown the op in another. Use either put or target, once. Another sink of the op
  /// may be of the same tensor, and its target this one: write what one is given before the next is asked for.
  Target target(const Shape& shape, Device device);
  /// Memory for a copy of `sum`, the target's destination, in a narrower type, where this is the last contribution and
  /// an op that passes the gradient on wants it in that type: for a row that writes both. Absent otherwise.
  Tensor shadow_to_write(const Tensor& sum);

 private:
  Slot* slot_ = nullptr;
};

using Sinks = std::span<Sink>;

/// Memory for an inner gradient of an operand's shape and type, for a row whose output may be that operand, in a walk
/// that is not recorded: the operand's own, whose values are lost then, where nobody else can see them, as its lines
/// are in the caches; else new memory.
Tensor in_place_of(const Tensor& operand);

/// Closes a leaf or a captured slot whose last contribution has landed: adds the sum to the leaf's gradient, once.
void settle_leaf(Slot& slot);

}  // namespace cinta::autograd
