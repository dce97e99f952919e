// The gradients of a group of parameters as slices of one flat buffer, so that one sweep reads them and one message can
// carry them.
#pragma once
#include <memory>
#include <vector>

#include "cinta/autograd/node.h"

namespace cinta::optim {

/// The buffer's memory is given back when the gradients are forgotten and taken anew by the next backward: until then
/// it serves as activations. Where a captured step knows its address it stays.
class FlatGradients {
 public:
  /// Of `length` elements; nothing is taken yet.
  FlatGradients(int64_t length, Dtype dtype, Device device) : length_(length), dtype_(dtype), device_(device) {}
  /// A further parameter of this shape from element `begin` on, behind those there are.
  void add(int64_t begin, const Shape& shape) { places_.push_back({begin, shape, {}}); }
  /// The buffer, whose gaps are 0, and parameter number i's slice of it, a storage of its own.
  const Tensor& flat();
  const Tensor& slice(size_t i);
  /// From now on the memory stays where it is.
  void stay() { stays_ = true; }
  /// Gives the memory back; false where it stays.
  bool give_back();

  /// What the tape asks for parameter number i's buffer.
  static std::shared_ptr<autograd::GradientHome> home(std::shared_ptr<FlatGradients> gradients, size_t i);

 private:
  struct Place {
    int64_t begin;
    Shape shape;
    Tensor slice;
  };
  void take();
  int64_t length_;
  Dtype dtype_;
  Device device_;
  bool stays_ = false;
  Tensor flat_;
  std::vector<Place> places_;
};

}  // namespace cinta::optim
