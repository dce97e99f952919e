// Scaled dot-product attention (Vaswani et al. 2017), fused: memory grows with the sequence, not with its square.
#pragma once
#include "cinta/backends/kernel.h"
#include "cinta/backends/kernels/random.h"

namespace cinta::kernels {

struct Attention {
  float scale = 1;  ///< of the scores, positive, usually 1/sqrt(head size)
  /// Query i sees keys 0..i. Of a sequence with a NaN or infinity, queries before it may get NaN too: what they do not
  /// see may be multiplied by 0.
  bool causal = false;
  View lengths;     ///< i32[B]: keys and queries at or beyond a sample's length do not exist; absent: all do
  View offsets;     ///< i32[N+1] from 0, rising: of N sequences laid end to end in one sample (B = 1, S = T),
                    ///< sequence n is offsets[n] .. offsets[n+1]; keys of another one, and what lies beyond the
                    ///< last, do not exist. Absent: a sample is one sequence. Not together with lengths
  Dropout dropout;  ///< on the probabilities; row of the mask = (sample * heads + head) * queries + query
  View rows;        ///< i64[R], contiguous: queries at these positions alone, numbers in the flattened [B*T], in any
                    ///< order. q, o, dq and dO are [1,H,R,D] then, lse [1,H,R]; query and queries above are those
                    ///< of the whole, which has T. Rows at no position are not written. Absent: all queries
};

/// o[B,H,S,D] from q[B,H,S,D], k,v[B,H,T,D] (any strides with a contiguous last dimension); lse[B,H,S] = logsumexp of
/// each row's scores (f32, or f64 beside f64 q). Rows that do not exist give o = 0 and lse = 0.
inline constinit Kernel<void(View o, View lse, View q, View k, View v, Attention)> attention{"attention", fused_row};
/// dq, dk, dv from dO; the probabilities are made again, from lse or without it, and divided by their sum. Gradients of
/// what does not exist are 0.
inline constinit Kernel<void(View dq, View dk, View dv, View grad_o, View q, View k, View v, View o, View lse,
                             Attention)>
    attention_backward{"attention_backward", fused_row};

}  // namespace cinta::kernels
