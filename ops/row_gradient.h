// Where a row writes a gradient that it can add to what is there.
#pragma once
#include <algorithm>

#include "cinta/autograd/sink.h"

namespace cinta {

/// Straight into the sink's target when that has the row's type and no other input of the op is the same tensor; else
/// by way of a buffer.
class RowGradient {
 public:
  /// Of input number `index`.
  RowGradient(autograd::Sinks sinks, size_t index, const Shape& shape, Dtype row_type, Device device)
      : sink_(sinks[index]) {
    if (!sink_.wanted()) return;
    const auto same = std::ranges::count_if(sinks, [this](const autograd::Sink& other) { return sink_.same(other); });
    if (same == 1 && sink_.dtype() == row_type)
      target_ = sink_.target(shape, device);
    else
      buffer_ = empty(shape, row_type, device);
  }
  /// For the row to write; absent when nobody wants this gradient.
  const Tensor& written() const { return buffer_ ? buffer_ : target_.destination; }
  View view() const { return written().view(); }
  float beta() const { return buffer_ ? 0 : target_.beta; }
  /// For a row that can also write the sum in a narrower type: see Sink.
  Tensor shadow_to_write() const { return target_.destination ? sink_.shadow_to_write(target_.destination) : Tensor(); }
  /// Call once, after the row has run.
  void finish() {
    if (buffer_) sink_.put(std::move(buffer_));
  }

 private:
  autograd::Sink& sink_;
  autograd::Sink::Target target_{{}, 0};
  Tensor buffer_;
};

}  // namespace cinta
