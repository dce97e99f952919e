// Reductions: the output has the rank of the input, with size 1 in the reduced dimensions. Any strides. Sums have a
// fixed order that does not depend on the number of threads.
#pragma once
#include "cinta/backends/kernel.h"

namespace cinta::kernels {

/// y = sum of x + beta * y. With beta 0 the old y is never read. No elements sum to 0.
inline constinit Kernel<void(View y, View x, float beta)> sum{"sum"};
/// y = largest of x; NaN wins. At least one element.
inline constinit Kernel<void(View y, View x)> max{"max"};
/// y (i64) = position along the reduced dimension of the first largest element (NaN is the largest); one dimension
/// `dim` is reduced.
inline constinit Kernel<void(View y, View x, int dim)> argmax{"argmax"};
/// y (f64, one element) = sum of squares of all of x: the gradient norm's core. Of f32 and narrower not finite iff
/// an element is not.
inline constinit Kernel<void(View y, View x)> sum_of_squares{"sum_of_squares"};

}  // namespace cinta::kernels
