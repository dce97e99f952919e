// Contracts of attention.
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/backends/kernels/attention.h"
#include "contract/contract.h"
#include "contract/dropout.h"

using namespace cinta;
using namespace cinta::contract;

namespace {

struct Heads {
  int64_t samples, heads, queries, keys, size;
  bool causal = false, ragged = false;  ///< ragged: every sample has a length of its own, the first one 0
  bool packed = false;                  ///< one sample of four sequences, the second one empty, and a tail
  float p = 0;
  Layout layout = Layout::dense;
  std::vector<int64_t> rows = {};  ///< the only queries that are computed
};

std::string label(const Heads& h, Dtype dtype) {
  return join(dtype, Shape{h.samples, h.heads, h.queries, h.keys, h.size}, h.causal ? " causal" : "",
              h.ragged ? " ragged" : "", h.packed ? " packed" : "", " p ", h.p, " layout ", int(h.layout), " rows ",
              h.rows.size());
}

Shape query_shape(const Heads& h) {
  if (h.rows.empty()) return {h.samples, h.heads, h.queries, h.size};
  return {1, h.heads, static_cast<int64_t>(h.rows.size()), h.size};
}
Shape lse_shape(const Heads& h) { return {query_shape(h)[0], h.heads, query_shape(h)[2]}; }
Shape key_shape(const Heads& h) { return {h.samples, h.heads, h.keys, h.size}; }

/// The operands that both directions read.
struct Operands {
  Operands(Trial& trial, const Heads& h, Dtype dtype) : heads(h), dropout(trial, h.p) {
    const int64_t longest = std::max(h.queries, h.keys);
    q = trial.input(query_shape(h), dtype, uniform(query_shape(h), -1.5, 1.5), h.layout);
    k = trial.input(key_shape(h), dtype, uniform(key_shape(h), -1.5, 1.5, 2), h.layout);
    v = trial.input(key_shape(h), dtype, uniform(key_shape(h), -1.5, 1.5, 3), h.layout);
    Values ends;
    for (int64_t b = 0; b < h.samples; ++b) ends.push_back(static_cast<double>(b * longest / h.samples));
    if (h.ragged) lengths = trial.input({h.samples}, Dtype::i32, ends);
    const auto at = [&](int64_t numerator, int64_t denominator) {
      return static_cast<double>(h.keys * numerator / denominator);
    };
    if (!h.rows.empty()) rows = trial.input({query_shape(h)[2]}, Dtype::i64, Values(h.rows.begin(), h.rows.end()));
    if (h.packed) offsets = trial.input({5}, Dtype::i32, {0, at(1, 5), at(1, 5), at(2, 3), at(7, 8)});
    // The probabilities may be stored in the type of q on their way to the product with v.
    trial.accuracy.computed_in = dtype;
    trial.accuracy.length = std::max(h.keys, h.size);
  }
  kernels::Attention options(const Call& c) const {
    return {1 / std::sqrt(static_cast<float>(heads.size)), heads.causal, c(lengths), c(offsets), dropout(c), c(rows)};
  }
  Heads heads;
  DropoutSite dropout;
  Handle q, k, v, lengths, offsets, rows;
};

void try_attention(const Heads& h, Dtype dtype) {
  Trial trial(kernels::attention, label(h, dtype));
  const Operands in(trial, h, dtype);
  const Handle o = trial.output(query_shape(h), dtype, h.layout);
  const Handle lse = trial.output(lse_shape(h), Dtype::f32);
  trial.run(
      [&](const Call& c) { kernels::attention(c.device, c(o), c(lse), c(in.q), c(in.k), c(in.v), in.options(c)); });
}

/// Outputs of the reference for the same inputs, which the backward reads.
void forward(const Heads& h, Dtype dtype, Values& o, Values& lse) {
  o.resize(static_cast<size_t>(query_shape(h).numel()));
  lse.resize(static_cast<size_t>(lse_shape(h).numel()));
  const auto view = [](Values& values, const Shape& shape) {
    return View{values.data(), shape, contiguous_strides(shape), Dtype::f64, true};
  };
  Trial trial(kernels::attention);
  const Operands in(trial, h, dtype);
  trial.run_reference([&](const Call& c) {
    kernels::attention(reference, view(o, query_shape(h)), view(lse, lse_shape(h)), c(in.q), c(in.k), c(in.v),
                       in.options(c));
  });
}

void try_attention_backward(const Heads& h, Dtype dtype) {
  Values o_values, lse_values;
  forward(h, dtype, o_values, lse_values);
  Trial trial(kernels::attention_backward, label(h, dtype));
  const Operands in(trial, h, dtype);
  const Handle grad_o = trial.input(query_shape(h), dtype, uniform(query_shape(h), -1, 1, 4), h.layout);
  const Handle o = trial.input(query_shape(h), dtype, o_values, h.layout);
  const Handle lse = trial.input(lse_shape(h), Dtype::f32, lse_values);
  const Handle dq = trial.output(query_shape(h), dtype, h.layout);
  const Handle dk = trial.output(key_shape(h), dtype, h.layout), dv = trial.output(key_shape(h), dtype, h.layout);
  trial.run([&](const Call& c) {
    kernels::attention_backward(c.device, c(dq), c(dk), c(dv), c(grad_o), c(in.q), c(in.k), c(in.v), c(o), c(lse),
                                in.options(c));
  });
}

void attention_contract() {
  // The last one has several blocks of queries.
  std::vector<Heads> cases = {{1, 1, 1, 1, 1},    {0, 2, 3, 3, 8},    {2, 3, 5, 5, 7},
                              {1, 2, 17, 17, 16}, {1, 1, 3, 63, 8},   {1, 1, 63, 3, 32},
                              {2, 1, 65, 65, 17}, {1, 1, 66, 257, 8}, {2, 1, 230, 230, 9}};
  std::vector<Heads> all;
  for (Heads h : cases)
    for (bool ragged : {false, true})
      for (bool causal : {false, true})
        for (float p : {0.0f, 0.3f}) {
          h.ragged = ragged, h.causal = causal && h.queries == h.keys, h.p = p;
          if (!causal || h.causal) all.push_back(h);
        }
  for (Layout layout : {Layout::shifted, Layout::padded})
    all.push_back({2, 3, 9, 9, 16, false, true, false, 0.2f, layout});
  // Whole panels, which need not be copied before they are packed.
  for (Layout layout : {Layout::dense, Layout::shifted})
    all.push_back({1, 2, 64, 96, 32, false, false, false, 0, layout});
  // Sums and columns of several tiles.
  for (int64_t size : {64, 100})
    for (bool causal : {false, true}) all.push_back({1, 2, 96, 96, size, causal});
  for (int64_t length : {1, 7, 30, 163})
    for (bool causal : {false, true})
      for (float p : {0.0f, 0.3f})
        all.push_back({.samples = 1,
                       .heads = 2,
                       .queries = length,
                       .keys = length,
                       .size = 9,
                       .causal = causal,
                       .packed = true,
                       .p = p});
  // Some queries alone, in no order and one twice; the second sample has one, the third none.
  std::vector<Heads> some(2, {.samples = 3, .heads = 2, .queries = 9, .keys = 9, .size = 16, .layout = Layout::padded});
  some[0].rows = {8, 2, 11, 2, 0};
  some[1].rows = {26};
  some.push_back({.samples = 2, .heads = 2, .queries = 130, .keys = 130, .size = 9});
  for (int64_t i = 0; i < 130; ++i) some.back().rows.push_back(i * 97 % 260);
  some.push_back({.samples = 1, .heads = 2, .queries = 163, .keys = 163, .size = 9, .packed = true});
  some.back().rows = {162, 161, 3, 33, 107, 20, 0, 141};
  for (Heads h : some)
    for (bool ragged : {false, true})
      for (bool causal : {false, true})
        for (float p : {0.0f, 0.3f}) {
          h.ragged = ragged && !h.packed, h.causal = causal, h.p = p;
          all.push_back(h);
        }
  for (const Heads& h : all)
    for (Dtype dtype : trained_types) {
      try_attention(h, dtype);
      try_attention_backward(h, dtype);
    }
}

const Contract attention_here{{&kernels::attention, &kernels::attention_backward}, attention_contract};

}  // namespace

TEST_CASE("contracts of attention", "[kernel_contract]") { check_contracts(); }
