// Rounding to a narrow format in a way that is chosen; cast() rounds in the usual one.
#pragma once
#include <optional>

#include "cinta/ops/random.h"

namespace cinta {

/// Which of the two values around a number is taken.
enum class Rounding : uint8_t {
  nearest,     ///< of two as near the one with the even code
  stochastic,  ///< each as often as it is near, so that the mean of many is the number
};

struct RoundOptions {
  Rounding rounding = Rounding::nearest;
  /// What becomes of numbers beyond the largest value; without one, what is usual for the type: those of 16 bits become
  /// infinities, those of 8 bits saturate.
  std::optional<Overflow> overflow = {};
  /// Where stochastic rounding draws from; Random::site() makes one. The word of an element follows from its place in
  /// row-major order, whatever the strides and the number of threads.
  RandomSite random = {};
  /// Whether x's first dimension counts the samples of a batch: parts of a batch are then rounded as in the whole. What
  /// all samples share, as weights, is rounded alike whatever the state's first sample.
  bool samples = false;
};

/// x in `dtype`, a float of 8 or 16 bits; NaN stays NaN. The gradient is that of cast(): dy, which as every
/// gradient has the type of its tensor, in the type of x. Throws
/// DtypeError, and for stochastic rounding ValueError or DeviceError unless there is a state on x's device.
Tensor round_to(const Tensor& x, Dtype dtype, const RoundOptions& options = {}, Where where = Where::current());

}  // namespace cinta
