// Softmax over the last dimension and the losses on it. Contiguous views [..., N].
#pragma once
#include "cinta/backends/kernel.h"

namespace cinta::kernels {

/// y = softmax(x); a row of -inf only gives NaN, as the formula does.
inline constinit Kernel<void(View y, View x)> softmax{"softmax"};
/// dx = y * (dy - sum(dy * y)).
inline constinit Kernel<void(View dx, View dy, View y)> softmax_backward{"softmax_backward"};
/// y = x - logsumexp(x).
inline constinit Kernel<void(View y, View x)> log_softmax{"log_softmax"};
/// dx = dy - exp(y) * sum(dy).
inline constinit Kernel<void(View dx, View dy, View y)> log_softmax_backward{"log_softmax_backward"};

struct CrossEntropy {
  int64_t ignore_index = -100;  ///< rows with this label give loss 0 and gradient 0
  float label_smoothing = 0;    ///< mixes the target with the uniform distribution
};

/// loss[R] (f32, or f64 with f64 logits) of logits[R,V] for labels[R] (i64), and lse[R,2], their logsumexp in two parts
/// whose sum would lose digits beside large logits: the largest one, and log(sum(exp(logits - largest))). A label
/// outside [0,V) that is not ignored is reported in `status` (a core/context.h Status) and gives loss 0.
inline constinit Kernel<void(View loss, View lse, View logits, View labels, CrossEntropy, void* status)> cross_entropy{
    "cross_entropy", fused_row};
/// dlogits[R,V] = dloss[R] * (softmax(logits) - target); dlogits may be logits itself.
inline constinit Kernel<void(View dlogits, View dloss, View logits, View lse, View labels, CrossEntropy)>
    cross_entropy_backward{"cross_entropy_backward", fused_row};

}  // namespace cinta::kernels
