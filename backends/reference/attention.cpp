// Attention with the whole matrix of probabilities written out, one head of one sample at a time.
#include "cinta/backends/kernels/attention.h"

#include <algorithm>
#include <numeric>

#include "cinta/backends/reference/dropout.h"
#include "cinta/backends/reference/element.h"

namespace cinta::oracle {
namespace {

using kernels::Attention;

using Matrix = std::vector<std::vector<double>>;

Matrix zeros(const View& like) {
  return Matrix(static_cast<size_t>(like.size(0)), std::vector<double>(static_cast<size_t>(like.size(1)), 0));
}

/// What a view of q, o or lse says of the queries of head `i`: all of the sample's, or of some rows that of this head.
View of_queries(const View& all, const Attention& options, const Index& i) {
  return part(all, {options.rows ? 0 : i[0], i[1]});
}

/// One head of one sample: q[S,D], k, v[T,D] and what the options say about it.
struct Head {
  Matrix q, k, v;
  Attention options;
  int64_t number;                ///< sample * heads + head
  int64_t first;                 ///< number of the sample's first position
  int64_t end;                   ///< of the sample: positions from here on do not exist
  std::vector<int64_t> queries;  ///< the rows of q that are this sample's

  Head(const View& q_all, const View& k_all, const View& v_all, const Attention& attention, const Index& i)
      : q(rows(of_queries(q_all, attention, i))),
        k(rows(part(k_all, i))),
        v(rows(part(v_all, i))),
        options(attention),
        number(i[0] * k_all.size(1) + i[1]),
        first(i[0] * k_all.size(2)),
        end(options.rows ? k_all.size(2) : std::max(q_all.size(2), k_all.size(2))) {
    for (int64_t row = 0; row < static_cast<int64_t>(q.size()); ++row)
      if (!options.rows || (position(row) >= 0 && position(row) < k_all.size(2))) queries.push_back(row);
    if (options.lengths) end = at(options.lengths, i[0]).integer();
    if (options.offsets) end = at(options.offsets, options.offsets.numel() - 1).integer();
  }

  /// Where the query in a row of q stands in the sample.
  int64_t position(int64_t row) const { return options.rows ? at(options.rows, row).integer() - first : row; }
  /// How many sequences begin at or before a position.
  int64_t sequence(int64_t position) const {
    int64_t begun = 0;
    if (options.offsets)
      for (int64_t n = 0; n < options.offsets.numel(); ++n) begun += at(options.offsets, n).integer() <= position;
    return begun;
  }
  /// The keys that the query in a row sees.
  std::vector<int64_t> seen_by(int64_t row) const {
    const int64_t query = position(row);
    std::vector<int64_t> out;
    for (int64_t key = 0; key < static_cast<int64_t>(k.size()); ++key)
      if (query < end && key < end && sequence(query) == sequence(key) && (!options.causal || key <= query))
        out.push_back(key);
    return out;
  }
  /// Their scores.
  std::vector<double> scores(int64_t row, const std::vector<int64_t>& keys) const {
    std::vector<double> out;
    for (int64_t key : keys) out.push_back(options.scale * inner_product(q[row], k[key]));
    return out;
  }
  /// What dropout multiplies a probability by.
  double kept(int64_t row, int64_t key) const {
    const auto columns = static_cast<int64_t>(k.size());
    const int64_t all = options.rows ? columns : static_cast<int64_t>(q.size());
    return mask(options.dropout, number * all + position(row), key, columns);
  }
};

double logsumexp(const std::vector<double>& scores) {
  double largest = scores[0], sum = 0;
  for (double score : scores) largest = std::max(largest, score);
  for (double score : scores) sum += std::exp(score - largest);
  return largest + std::log(sum);
}

Shape samples_and_heads(const View& k) { return leading(k.shape, 2); }

void attend(View o, View lse, View q, View k, View v, Attention options) {
  for (const Index& i : Indices(samples_and_heads(k))) {
    const Head head(q, k, v, options, i);
    const View out = of_queries(o, options, i), out_lse = of_queries(lse, options, i);
    for (int64_t s : head.queries) {
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
  for (const Index& i : Indices(samples_and_heads(k))) {
    const Head head(q, k, v, options, i);
    const Matrix out_gradient = rows(of_queries(grad_o, options, i));
    const View row_lse = of_queries(lse, options, i), query_gradient = of_queries(dq, options, i);
    Matrix q_sums = zeros(query_gradient), k_sums = zeros(part(dk, i)), v_sums = zeros(part(dv, i));
    for (int64_t s : head.queries) {
      const std::vector<int64_t> keys = head.seen_by(s);
      std::vector<double> p = head.scores(s, keys), dp(p), kept(p);
      for (size_t j = 0; j < keys.size(); ++j) {
        p[j] = std::exp(p[j] - at(row_lse, s));
        kept[j] = head.kept(s, keys[j]);
        dp[j] = kept[j] * inner_product(out_gradient[s], head.v[keys[j]]);
      }
      const double sum = std::accumulate(p.begin(), p.end(), 0.0);  // 1, but lse may have been rounded
      for (double& share : p) share /= sum;
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
    for (int64_t s : head.queries) blend(part(query_gradient, {s}), q_sums[s], 0);
    for (int64_t t = 0; t < k.size(2); ++t) {
      blend(part(part(dk, i), {t}), k_sums[t], 0);
      blend(part(part(dv, i), {t}), v_sums[t], 0);
    }
  }
}

const Install attention{kernels::attention, reference, attend};
const Install attention_backward{kernels::attention_backward, reference, attend_gradients};

}  // namespace
}  // namespace cinta::oracle
