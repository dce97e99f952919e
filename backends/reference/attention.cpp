// Attention with the whole matrix of probabilities written out, one head of one sample at a time.
#include "cinta/backends/kernels/attention.h"

#include <algorithm>

#include "cinta/backends/reference/dropout.h"
#include "cinta/backends/reference/element.h"

namespace cinta::oracle {
namespace {

using kernels::Attention;

using Matrix = std::vector<std::vector<double>>;

Matrix zeros(const View& like) {
  return Matrix(static_cast<size_t>(like.size(0)), std::vector<double>(static_cast<size_t>(like.size(1)), 0));
}

/// One head of one sample: q[S,D], k, v[T,D] and what the options say about it.
struct Head {
  Matrix q, k, v;
  Attention options;
  int64_t number;  ///< sample * heads + head
  int64_t end;     ///< of the sample: positions from here on do not exist

  Head(const View& q_all, const View& k_all, const View& v_all, const Attention& attention, const Index& i)
      : q(rows(part(q_all, i))),
        k(rows(part(k_all, i))),
        v(rows(part(v_all, i))),
        options(attention),
        number(i[0] * q_all.size(1) + i[1]),
        end(std::max(q_all.size(2), k_all.size(2))) {
    if (options.lengths) end = at(options.lengths, i[0]).integer();
    if (options.offsets) end = at(options.offsets, options.offsets.numel() - 1).integer();
  }

  /// How many sequences begin at or before a position.
  int64_t sequence(int64_t position) const {
    int64_t begun = 0;
    if (options.offsets)
      for (int64_t n = 0; n < options.offsets.numel(); ++n) begun += at(options.offsets, n).integer() <= position;
    return begun;
  }
  /// The keys that a query sees.
  std::vector<int64_t> seen_by(int64_t query) const {
    std::vector<int64_t> out;
    for (int64_t key = 0; key < static_cast<int64_t>(k.size()); ++key)
      if (query < end && key < end && sequence(query) == sequence(key) && (!options.causal || key <= query))
        out.push_back(key);
    return out;
  }
  /// Their scores.
  std::vector<double> scores(int64_t query, const std::vector<int64_t>& keys) const {
    std::vector<double> out;
    for (int64_t key : keys) out.push_back(options.scale * inner_product(q[query], k[key]));
    return out;
  }
  /// What dropout multiplies a probability by.
  double kept(int64_t query, int64_t key) const {
    const auto columns = static_cast<int64_t>(k.size());
    return mask(options.dropout, number * static_cast<int64_t>(q.size()) + query, key, columns);
  }
};

double logsumexp(const std::vector<double>& scores) {
  double largest = scores[0], sum = 0;
  for (double score : scores) largest = std::max(largest, score);
  for (double score : scores) sum += std::exp(score - largest);
  return largest + std::log(sum);
}

Shape samples_and_heads(const View& q) { return leading(q.shape, 2); }

void attend(View o, View lse, View q, View k, View v, Attention options) {
  for (const Index& i : Indices(samples_and_heads(q))) {
    const Head head(q, k, v, options, i);
    const View out = part(o, i), out_lse = part(lse, i);
    for (int64_t s = 0; s < out.size(0); ++s) {
      std::vector<double> sum(static_cast<size_t>(out.size(1)), 0);
      const std::vector<int64_t> keys = head.seen_by(s);
      const std::vector<double> scores = head.scores(s, keys);
      const double row_lse = keys.empty() ? 0 : logsumexp(scores);
      for (size_t j = 0; j < keys.size(); ++j) {
        const double share = std::exp(scores[j] - row_lse) * head.kept(s, keys[j]);
        for (size_t d = 0; d < sum.size(); ++d) sum[d] += share * head.v[keys[j]][d];
      }
      blend(part(out, {s}), sum, 0);
      at(out_lse, s) = row_lse;
    }
  }
}

// With P the probabilities, M the mask and dA = dO V^T: dV = (P M)^T dO; dP = dA M; and through the softmax
// dS = P (dP - sum(dP P)), from which dQ = scale dS K and dK = scale dS^T Q.
void attend_gradients(View dq, View dk, View dv, View grad_o, View q, View k, View v, View, View lse,
                      Attention options) {
  for (const Index& i : Indices(samples_and_heads(q))) {
    const Head head(q, k, v, options, i);
    const Matrix out_gradient = rows(part(grad_o, i));
    const View row_lse = part(lse, i);
    Matrix q_sums = zeros(part(dq, i)), k_sums = zeros(part(dk, i)), v_sums = zeros(part(dv, i));
    for (int64_t s = 0; s < q.size(2); ++s) {
      const std::vector<int64_t> keys = head.seen_by(s);
      std::vector<double> p = head.scores(s, keys), dp(p), kept(p);
      for (size_t j = 0; j < keys.size(); ++j) {
        p[j] = std::exp(p[j] - at(row_lse, s));
        kept[j] = head.kept(s, keys[j]);
        dp[j] = kept[j] * inner_product(out_gradient[s], head.v[keys[j]]);
      }
      const double along = inner_product(dp, p);
      for (size_t j = 0; j < keys.size(); ++j) {
        const int64_t t = keys[j];
        const double ds = options.scale * p[j] * (dp[j] - along);
        for (size_t d = 0; d < head.q[s].size(); ++d) {
          q_sums[s][d] += ds * head.k[t][d];
          k_sums[t][d] += ds * head.q[s][d];
          v_sums[t][d] += p[j] * kept[j] * out_gradient[s][d];
        }
      }
    }
    const auto store = [&i](const View& all, const Matrix& sums) {
      const View out = part(all, i);
      for (int64_t r = 0; r < out.size(0); ++r) blend(part(out, {r}), sums[r], 0);
    };
    store(dq, q_sums);
    store(dk, k_sums);
    store(dv, v_sums);
  }
}

const Install attention{kernels::attention, reference, attend};
const Install attention_backward{kernels::attention_backward, reference, attend_gradients};

}  // namespace
}  // namespace cinta::oracle
