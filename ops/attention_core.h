// What the ops of attention share beside how they hold q, k and v: options, one kernel row, one composed form.
#pragma once
#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/attention.h"
#include "cinta/ops/attention.h"

namespace cinta {

/// What says which queries and keys there are.
struct AttentionExtent {
  Tensor lengths, offsets, rows;
};

/// Which keys the queries of AttentionCore::composed() see.
struct AttentionSight {
  Tensor query;         ///< i32, their positions in the sample, aligned with the scores
  Tensor lengths;       ///< of their samples, aligned with the scores; absent: the options have none
  DropoutSite dropout;  ///< of the probabilities
};

class AttentionCore {
 public:
  /// For q of the shape of x but for its length, which `length` is, and heads of the given size. Throws what the
  /// options have wrong.
  AttentionCore(const char* op, const AttentionOptions& options, const Tensor& x, int64_t length, int64_t size,
                Where where);
  /// The queries are those at these positions of k alone, i64[R].
  void take_queries(const Tensor& rows) { given_.rows = rows; }

  /// out = attention of q, k and v, all as the kernel wants them.
  void run(const Tensor& out, const Tensor& q, const Tensor& k, const Tensor& v);
  static std::array<autograd::FusedRow, 1> fused_rows() {
    return {{{&kernels::attention, &kernels::attention_backward}}};
  }
  /// Keeps what backward needs beside q, k and v; called from an op's save().
  void keep(const Tensor& out);
  Tensor output() { return o_.get(); }
  Tensor logsumexp() { return lse_.get(); }
  /// The options as the kernel's backward wants them.
  kernels::Attention kept_row(const Tensor& q, const Tensor& k);

  /// The same with ops, the matrix of probabilities written out, from q[B,H,S,D], k,v[B,H,T,D]; before keep() or after.
  Tensor composed(const Tensor& q, const Tensor& k, const Tensor& v);
  Tensor composed(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionSight& sight);

  /// Each absent where the options have none.
  AttentionExtent extent();
  const DropoutSite& dropout() const { return draw_.again(op_); }

 private:
  kernels::Attention row(const AttentionExtent& extent, const Tensor& q, const Tensor& k) const;
  const char* op_;
  bool causal_;
  float scale_;
  Draw draw_;
  AttentionExtent given_;  // between forward and keep, as lse is
  Tensor given_lse_;
  autograd::Saved lengths_, offsets_, rows_, o_, lse_;
};

/// Whether the numbers of an index can be looked at where they lie, now.
bool host_sees(const Tensor& index);

}  // namespace cinta
