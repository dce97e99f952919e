// Saved: a tensor that an op keeps for its backward, or a hole that brings it back.
#pragma once
#include "cinta/autograd/mode.h"

namespace cinta::autograd {

class Saved {
 public:
  /// Called from an op's save(). Under a Keeper the tensor may become a hole.
  void keep(const Tensor& tensor);
  /// The tensor, brought back if need be, with its seat on the tape, so that a backward written with ops can be taped.
  /// Throws ValueError naming both ops, and where the one that saved it was called, when it was overwritten in place
  /// meanwhile.
  Tensor get();
  /// The same for the last use in a backward that is not taped: where the walk lets go of the op after it, and nobody
  /// else holds the tensor, the caller is the only one who does, as in_place_of() wants it.
  Tensor take();
  /// True iff something was kept.
  explicit operator bool() const { return kept_; }

 private:
  Tensor value_;
  std::shared_ptr<Hole> hole_;
  std::weak_ptr<Slot> output_;   // own output: holding it would be a cycle
  std::shared_ptr<Slot> input_;  // seat of an input while its value is a hole
  const char* op_ = "";
  Where where_;
  uint32_t version_ = 0;
  int index_ = 0;
  bool kept_ = false;
};

}  // namespace cinta::autograd
