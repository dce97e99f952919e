// Rows of products in narrow formats: find the scale of each block of a matrix, round the matrix to the format under
// it, multiply two such matrices. What hardware is fed is what these rows compute, number by number.
// Micikevicius et al. 2022, "FP8 formats for deep learning".
#pragma once
#include "cinta/backends/kernel.h"

namespace cinta::kernels {

/// The part of a matrix that shares a scale; the last one of a row or column of blocks may be smaller.
struct Blocks {
  int64_t rows = 1, columns = 1;
};

/// largest[R,C] (f32) = greatest magnitude in each block of x[M,K], contiguous; NaN where there is one, 0 where there
/// is no element. R = ceil(M / rows), C = ceil(K / columns).
inline constinit Kernel<void(View largest, View x, Blocks)> block_amax{"block_amax"};

/// How a scale follows from a greatest magnitude.
struct ScaleRule {
  float largest = 448;        ///< value of the format; 0: every scale is 1
  bool power_of_two = false;  ///< rounded down to one
  int margin = 0;             ///< halvings left as room
};
/// scales[0] = largest / amax / 2^margin in f32, from 2^-126 to 2^126, and 1 for amax 0; scales[1] = 1 / scales[0].
/// scales f32[2,R,C], amax f32[R,C]. Where amax is not finite scales[0] = 1 and scales[1] = NaN: what was no number
/// does not become one by saturation.
inline constinit Kernel<void(View scales, View amax, ScaleRule)> scale_from_amax{"scale_from_amax"};

/// Places in the state f32[3 + N] of one delayed scale; from delayed_history on: greatest magnitudes of the last N
/// steps, newest first, 0 where there was none.
enum DelayedScale { delayed_scale = 0, delayed_inverse = 1, delayed_staged = 2, delayed_history = 3 };
/// scales f32[2,1,1] = what the state holds, and where its history is empty what amax f32[1,1] gives; with NaN for the
/// inverse where amax is not finite. `stage`: a finite amax above the staged one replaces it.
inline constinit Kernel<void(View scales, View state, View amax, ScaleRule, bool stage)> use_delayed_scale{
    "use_delayed_scale"};
/// At the end of a step: the staged magnitude enters the history, and the scale is computed as above from the greatest
/// of the history or its newest. Nothing else changes where nothing, or 0, was staged, or where factor (f32[1], may be
/// absent) is 0: what was staged is forgotten.
inline constinit Kernel<void(View state, View factor, ScaleRule, bool most_recent)> update_delayed_scale{
    "update_delayed_scale"};

/// codes[M,K] = x[M,K] * scale of its block, multiplied in f32, then to nearest; too large values, infinities too,
/// become the largest. codes of f32 hold TF32 numbers, infinities among them. Contiguous; scales (as above) may be
/// absent: 1. counts (i64[3], may be absent) grow by the number of elements, those that were too large, and those other
/// than 0 that became 0.
inline constinit Kernel<void(View codes, View x, View scales, Blocks, View counts)> quantize{"quantize"};

/// y[M,N] = a b^T + beta * y, where a[M,K] and b[N,K] are codes times the inverse scale of their block; contiguous, so
/// that both have the summed dimension last, which is what tensor cores ask of 8-bit operands. Scales may be absent.
/// Added up in f32.
inline constinit Kernel<void(View y, View a, View a_scales, Blocks, View b, View b_scales, Blocks, float beta)>
    scaled_matmul{"scaled_matmul"};

}  // namespace cinta::kernels
