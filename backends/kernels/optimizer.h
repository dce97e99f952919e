// Optimizer sweeps over flat, contiguous buffers. What changes from step to step lies on the device, so that a captured
// step can be replayed.
#pragma once
#include "cinta/backends/kernel.h"

namespace cinta::kernels {

/// A flat buffer is a row of segments; segment i is [ends[i-1], ends[i]) and has its own rate factor and weight decay.
struct Segments {
  View ends;          ///< i64[n], the last is the buffer's length
  View rate_factors;  ///< f32[n]
  View decays;        ///< f32[n]
};

/// What the host sets before a step, as f32[4] on the device: rate, gradient factor (clip and unscale), 1 - beta1^t,
/// 1 - beta2^t. A gradient factor of 0 skips the step: nothing is written.
enum SweepScalar { sweep_rate = 0, sweep_gradient_factor = 1, sweep_correction1 = 2, sweep_correction2 = 3 };

struct AdamW {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;  ///< doubles, because 1 - beta2 in f32 is wrong in its fifth digit
};
/// One sweep of AdamW (Loshchilov, Hutter 2019): g = factor * gradient; w -= rate*decay*w; m, v updated;
/// w -= rate * (m / correction1) / (sqrt(v / correction2) + eps). All f32 (or all f64), but `shadow`: the new w in a
/// narrower type; may be absent.
inline constinit Kernel<void(View w, View shadow, View m, View v, View gradient, Segments, View scalars, AdamW)> adamw{
    "adamw", fused_row};

struct Sgd {
  double momentum = 0;
  bool nesterov = false;
};
/// g = factor * gradient + decay*w; buffer = momentum*buffer + g (buffer is absent without momentum);
/// w -= rate * (nesterov ? g + momentum*buffer : buffer). `shadow` as above.
inline constinit Kernel<void(View w, View shadow, View buffer, View gradient, Segments, View scalars, Sgd)> sgd{
    "sgd", fused_row};

/// scalars[sweep_gradient_factor] = min(1, max_norm / (norm + 1e-6)) / loss_scale[0], where norm = sqrt(sum of
/// squares[0]) / loss_scale[0] is written to norm[0] (f32); a norm that is not finite gives factor 0. max_norm 0: no
/// clipping. loss_scale (f32) may be absent: 1.
inline constinit Kernel<void(View scalars, View norm, View sum_of_squares, View loss_scale, float max_norm)>
    clip_factor{"clip_factor"};

/// After the factor is known: unless it is 0, the step counts in updates[0] (i64), and the corrections become
/// 1 - beta^updates. A step that is skipped leaves no trace in those that follow.
inline constinit Kernel<void(View scalars, View updates, double beta1, double beta2)> count_update{"count_update"};

struct LossScale {
  bool dynamic = false;  ///< false: count only
  float growth = 2, backoff = 0.5f;
  int64_t interval = 2000, hysteresis = 1;
};
/// Places in `counts`, i64[4]: steps without overflow since the scale last changed, overflows left before it shrinks,
/// skipped steps in a row, skipped steps.
enum LossScaleCount { scale_good = 0, scale_patience = 1, scale_skipped_in_row = 2, scale_skipped = 3 };
/// What a step does to its loss scale (f32[1]). The step was skipped iff one of squares[G] (f64) is not finite; each
/// such adds 1 to found[G] (i64). After a skip patience falls; at 0 and below the scale is multiplied by backoff, but
/// stays normal. After `interval` good steps it is multiplied by growth, unless that is infinite, and patience is
/// hysteresis again.
inline constinit Kernel<void(View scale, View counts, View found, View squares, LossScale)> update_loss_scale{
    "update_loss_scale"};

}  // namespace cinta::kernels
