// How far a kernel may be from the exact result. Nothing here is picked by hand per row:
//
//   |got - want| <= u * (n + 16) * (|want| + sensitivity + floor), rounded outwards to the type it is stored in
//
// u            half a unit in the last place of the type that the kernel computes in (f32 unless the row stores its
//              intermediate results in a narrower one)
// n            how many terms the longest sum of the row adds; 16 stands for the elementary steps around it, such as
//              an exponential good to a few units in the last place
// sensitivity  |change of the result| / e when every floating input is multiplied by 1 + e or 1 - e at random: what a
//              relative error of u in each input does to the result is u * sensitivity (measured on the reference)
// floor        the size of an intermediate sum that cancels in the formula itself (1 + erf(x) far to the left);
//              0 unless a contract gives one, and says why
//
// A result is right iff it lies between the two ends of that interval after each was rounded to the stored type: for
// narrow types, overflow and saturation no further rule is needed.
#pragma once
#include <cmath>

#include "cinta/core/dtype.h"

namespace cinta::contract {

/// Half a unit in the last place of 1: the largest relative error of one rounding.
inline double rounding_unit(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return 0x1p-53;
    case Dtype::f32:
      return 0x1p-24;
    case Dtype::f16:
      return 0x1p-11;
    case Dtype::bf16:
      return 0x1p-8;
    case Dtype::f8e4m3:
    case Dtype::f8e4m3fnuz:
      return 0x1p-4;
    default:
      return 0x1p-3;
  }
}

struct Accuracy {
  int64_t length = 1;              ///< n above
  Dtype computed_in = Dtype::f32;  ///< gives u above
  double floor = 0;                ///< as above
  bool exact = false;              ///< no tolerance at all: comparisons, maxima, copies, masks
};

inline double tolerance(const Accuracy& accuracy, double want, double sensitivity) {
  if (accuracy.exact || !std::isfinite(want) || !std::isfinite(sensitivity)) return 0;
  return rounding_unit(accuracy.computed_in) * static_cast<double>(accuracy.length + 16) *
         (std::abs(want) + sensitivity + accuracy.floor);
}

}  // namespace cinta::contract
