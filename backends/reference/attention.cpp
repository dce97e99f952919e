// Attention with the whole matrix of probabilities written out, one head of one sample at a time.
#include "cinta/backends/kernels/attention.h"

#include <algorithm>

#include "cinta/backends/reference/dropout.h"
#include "cinta/backends/reference/element.h"

namespace cinta::oracle {
namespace {

using kernels::Attention;

/// One head of one sample: q[S,D], k, v[T,D] and what the options say about it.
struct Head {
  View q, k, v;
  Attention options;
  int64_t number;   ///< sample * heads + head
  int64_t queries;  ///< that exist
  int64_t keys;     ///< that exist

  Head(const View& q_all, const View& k_all, const View& v_all, const Attention& attention, const Index& i)
      : q(part(q_all, i)),
        k(part(k_all, i)),
        v(part(v_all, i)),
        options(attention),
        number(i[0] * q_all.size(1) + i[1]) {
    const int64_t length = options.lengths ? at(options.lengths, i[0]).integer() : std::max(q.size(0), k.size(0));
    queries = std::min(q.size(0), length);
    keys = std::min(k.size(0), length);
  }

  int64_t seen_by(int64_t query) const { return options.causal ? std::min(keys, query + 1) : keys; }
  double score(int64_t query, int64_t key) const {
    double sum = 0;
    for (int64_t d = 0; d < q.size(1); ++d) sum += at(q, query, d) * at(k, key, d);
    return options.scale * sum;
  }
  double lse(int64_t query) const {
    double largest = -INFINITY, sum = 0;
    for (int64_t key = 0; key < seen_by(query); ++key) largest = std::max(largest, score(query, key));
    for (int64_t key = 0; key < seen_by(query); ++key) sum += std::exp(score(query, key) - largest);
    return largest + std::log(sum);
  }
  double kept(int64_t query, int64_t key) const {
    return mask(options.dropout, number * q.size(0) + query, key, k.size(0));
  }
};

Shape samples_and_heads(const View& q) { return leading(q.shape, 2); }

void attend(View o, View lse, View q, View k, View v, Attention options) {
  for (const Index& i : Indices(samples_and_heads(q))) {
    const Head head(q, k, v, options, i);
    const View out = part(o, i), out_lse = part(lse, i);
    for (int64_t s = 0; s < out.size(0); ++s) {
      std::vector<double> sum(static_cast<size_t>(out.size(1)), 0);
      const bool exists = s < head.queries && head.seen_by(s) > 0;
      const double row_lse = exists ? head.lse(s) : 0;
      for (int64_t t = 0; exists && t < head.seen_by(s); ++t) {
        const double share = std::exp(head.score(s, t) - row_lse) * head.kept(s, t);
        for (int64_t d = 0; d < out.size(1); ++d) sum[d] += share * at(head.v, t, d);
      }
      blend(part(out, {s}), sum, 0);
      at(out_lse, s) = row_lse;
    }
  }
}

/// A matrix of doubles to add into, stored in a view at the end.
struct Sums {
  explicit Sums(const View& like) : columns(like.size(1)), data(static_cast<size_t>(like.numel()), 0) {}
  double& operator()(int64_t i, int64_t j) { return data[i * columns + j]; }
  void store(const View& out) const {
    for (int64_t n = 0; n < out.numel(); ++n) nth(out, n) = data[n];
  }
  int64_t columns;
  std::vector<double> data;
};

// With P the probabilities, M the mask and dA = dO V^T: dV = (P M)^T dO; dP = dA M; and through the softmax
// dS = P (dP - sum(dP P)), from which dQ = scale dS K and dK = scale dS^T Q.
void attend_gradients(View dq, View dk, View dv, View grad_o, View q, View k, View v, View, View lse,
                      Attention options) {
  for (const Index& i : Indices(samples_and_heads(q))) {
    const Head head(q, k, v, options, i);
    const View out_gradient = part(grad_o, i), row_lse = part(lse, i);
    Sums q_sums(head.q), k_sums(head.k), v_sums(head.v);
    for (int64_t s = 0; s < head.queries; ++s) {
      const int64_t seen = head.seen_by(s), size = head.q.size(1);
      std::vector<double> p(static_cast<size_t>(seen)), dp(p), kept(p);
      double along = 0;
      for (int64_t t = 0; t < seen; ++t) {
        p[t] = std::exp(head.score(s, t) - at(row_lse, s));
        kept[t] = head.kept(s, t);
        for (int64_t d = 0; d < size; ++d) dp[t] += kept[t] * at(out_gradient, s, d) * at(head.v, t, d);
        along += dp[t] * p[t];
      }
      for (int64_t t = 0; t < seen; ++t) {
        const double ds = options.scale * p[t] * (dp[t] - along);
        for (int64_t d = 0; d < size; ++d) {
          q_sums(s, d) += ds * at(head.k, t, d);
          k_sums(t, d) += ds * at(head.q, s, d);
          v_sums(t, d) += p[t] * kept[t] * at(out_gradient, s, d);
        }
      }
    }
    q_sums.store(part(dq, i));
    k_sums.store(part(dk, i));
    v_sums.store(part(dv, i));
  }
}

const Install attention{kernels::attention, reference, attend};
const Install attention_backward{kernels::attention_backward, reference, attend_gradients};

}  // namespace
}  // namespace cinta::oracle
