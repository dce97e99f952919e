// Where a row writes the gradient of a parameter that it computes beside something else.
#pragma once
#include "cinta/autograd/sink.h"
#include "cinta/backends/kernels/elementwise.h"

namespace cinta {

/// Straight into the sink's target when that has the row's type; else by way of a buffer that finish() adds from.
class ParameterGradient {
 public:
  ParameterGradient(autograd::Sink& sink, const Shape& shape, Dtype row_type, Device device) {
    if (!sink.wanted()) return;
    target_ = sink.target(shape, device);
    if (target_.destination.dtype() != row_type) buffer_ = empty(shape, row_type, device);
  }
  /// For the row; absent when nobody wants this gradient.
  View view() const { return (buffer_ ? buffer_ : target_.destination).view(); }
  float beta() const { return buffer_ ? 0 : target_.beta; }
  /// Call once, after the row has run.
  void finish() {
    if (!buffer_) return;
    const auto& row = target_.beta == 0 ? kernels::copy : kernels::accumulate;
    row(buffer_.device(), target_.destination, buffer_);
  }

 private:
  autograd::Sink::Target target_{{}, 0};
  Tensor buffer_;
};

}  // namespace cinta
