// Where a row writes a gradient that it can add to what is there.
#pragma once
#include "cinta/autograd/sink.h"
#include "cinta/backends/kernels/elementwise.h"

namespace cinta {

/// Straight into the sink's target when that has the row's type; else by way of a buffer that finish() adds from.
class RowGradient {
 public:
  RowGradient(autograd::Sink& sink, const Shape& shape, Dtype row_type, Device device) : sink_(sink) {
    if (!sink.wanted()) return;
    target_ = sink.target(shape, device);
    if (target_.destination.dtype() != row_type) buffer_ = empty(shape, row_type, device);
  }
  /// For the row to write; absent when nobody wants this gradient.
  const Tensor& written() const { return buffer_ ? buffer_ : target_.destination; }
  View view() const { return written().view(); }
  float beta() const { return buffer_ ? 0 : target_.beta; }
  /// For a row that can also write the sum in a narrower type: see Sink.
  Tensor shadow_to_write() const {
    return target_.destination && !buffer_ ? sink_.shadow_to_write(target_.destination) : Tensor();
  }
  /// Call once, after the row has run.
  void finish() {
    if (!buffer_) return;
    const auto& row = target_.beta == 0 ? kernels::copy : kernels::accumulate;
    row(buffer_.device(), target_.destination, buffer_);
  }

 private:
  autograd::Sink& sink_;
  autograd::Sink::Target target_{{}, 0};
  Tensor buffer_;
};

}  // namespace cinta
