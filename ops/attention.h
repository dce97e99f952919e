// Scaled dot-product attention (Vaswani et al. 2017).
#pragma once
#include "cinta/ops/random.h"

namespace cinta {

struct AttentionOptions {
  bool causal = false;       ///< query i sees keys 0..i
  Tensor lengths = {};       ///< i32[B], 0 .. max(S,T): keys and queries at or beyond a sample's length do not exist;
                             ///< absent: all do. Others are refused where the host sees them, as offsets are
  Tensor offsets = {};       ///< i32[N+1], 0 first, rising: N sequences laid end to end in one sample (B = 1, S = T);
                             ///< sequence n is offsets[n] .. offsets[n+1] and sees itself only. Not with lengths
  DropoutSite dropout = {};  ///< on the probabilities
  double scale = 0;          ///< of the scores; 0 means 1/sqrt(D)
};

/// softmax(q k^T scale) v for q[B,H,S,D] and k,v[B,H,T,D] -> [B,H,S,D], laid out as [B,S,H,D], so that joining the
/// heads is a view. Queries that do not exist give 0. Keeps no matrix of probabilities.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {},
                 Where where = Where::current());
/// The same from the joint projection qkv[B,S,3*heads*D] (all of q, then k, then v; each split into heads) -> [B,S,
/// heads*D]. The gradient is written as one tensor, without joining three.
Tensor self_attention(const Tensor& qkv, int heads, const AttentionOptions& options = {},
                      Where where = Where::current());
/// The same for the queries at some positions alone: q[R,heads*D] of those that rows (i64[R]) name, numbers in the
/// flattened [B*S], against kv[B,S,2*heads*D] (all of k, then v) -> [R,heads*D]. Each gets what it gets among all,
/// dropped elements and all. Throws ValueError for a row that is no position.
Tensor self_attention(const Tensor& q, const Tensor& kv, const Tensor& rows, int heads,
                      const AttentionOptions& options = {}, Where where = Where::current());

}  // namespace cinta
