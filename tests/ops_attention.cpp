// Rows of the op table: attention.
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/autograd/tape.h"
#include "cinta/ops/attention.h"
#include "cinta/ops/dropout.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/embedding.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "cinta/ops/softmax.h"
#include "op_table.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

using In = const Operands&;

const Input q = real({batch, 2, 4, 3}), k = real({batch, 2, 5, 3}), joint = real({batch, 4, 18}),
            lengths = whole({batch}, 0, 5, Dtype::i32), state = random_state();

/// Positions 0, 1, .. as a tensor of the given shape.
Tensor positions(int32_t count, const Shape& shape, Device device) {
  std::vector<int32_t> numbers;
  for (int32_t i = 0; i < count; ++i) numbers.push_back(i);
  return from_values(numbers, shape, device);
}

/// The textbook's attention: very negative scores where a key is not seen, zeros where a query does not exist.
Tensor by_hand(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  const int32_t queries = static_cast<int32_t>(q.size(2)), keys = static_cast<int32_t>(k.size(2));
  const Tensor key = positions(keys, {keys}, q.device()), query = positions(queries, {queries, 1}, q.device()),
               low = full({}, -1e30, q.dtype(), q.device()), zero = full({}, 0, q.dtype(), q.device());
  const double scale = options.scale > 0 ? options.scale : 1 / std::sqrt(q.size(3));
  Tensor scores = matmul(q, transpose(k, 2, 3)) * static_cast<float>(scale);  // as rounded as the fused op has it
  if (options.causal) scores = cinta::where(greater(key, query), low, scores);
  if (options.offsets) {
    // Sequence by sequence: the score of a pair of two sequences is low, and what lies beyond the last is cut.
    const auto bounds = to_vector<int64_t>(options.offsets);
    std::vector<uint8_t> own(static_cast<size_t>(queries * keys), 0), real(static_cast<size_t>(queries), 0);
    for (size_t n = 0; n + 1 < bounds.size(); ++n)
      for (int64_t i = bounds[n]; i < bounds[n + 1]; ++i) {
        real[static_cast<size_t>(i)] = 1;
        for (int64_t j = bounds[n]; j < bounds[n + 1]; ++j) own[static_cast<size_t>(i * keys + j)] = 1;
      }
    const Tensor one = full({}, 1, Dtype::u8, q.device());
    scores = cinta::where(equal(from_values(own, {queries, keys}, q.device()), one), scores, low);
    const Tensor out = matmul(dropout(softmax(scores), options.dropout), v);
    return cinta::where(equal(from_values(real, {queries, 1}, q.device()), one), out, zero);
  }
  const Tensor end = options.lengths ? reshape(options.lengths, {q.size(0), 1, 1, 1}) : Tensor();
  if (end) scores = cinta::where(less(key, end), scores, low);
  const Tensor out = matmul(dropout(softmax(scores), options.dropout), v);
  return end ? cinta::where(less(query, end), out, zero) : out;
}

OpCase separate(const char* variant, bool causal, bool padded, bool drop, double scale = 0) {
  auto options = [=](In x) {
    return AttentionOptions{
        causal, padded ? x[3] : Tensor(), {}, drop ? DropoutSite{x[4], 9, 0.3} : DropoutSite{}, scale};
  };
  return OpCase(
             "attention", {q, k, k, lengths, state}, [=](In x) { return attention(x[0], x[1], x[2], options(x)); },
             variant)
      .composed([=](In x) { return by_hand(x[0], x[1], x[2], options(x)); });
}

OpCase together(const char* variant, bool causal, bool padded, bool drop) {
  auto options = [=](In x) {
    return AttentionOptions{causal, padded ? x[1] : Tensor(), {}, drop ? DropoutSite{x[2], 9, 0.3} : DropoutSite{}};
  };
  return OpCase(
             "self_attention", {joint, lengths, state}, [=](In x) { return self_attention(x[0], 2, options(x)); },
             variant)
      .composed([=](In x) {
        auto heads = [&](int part) {
          const Tensor own = slice(x[0], 2, part * 6, part * 6 + 6);
          return transpose(reshape(own, {own.size(0), 4, 2, 3}), 1, 2);
        };
        const Tensor out = by_hand(heads(0), heads(1), heads(2), options(x));
        return reshape(transpose(out, 1, 2), {x[0].size(0), 4, 6});
      });
}

/// One sample of four sequences, the second one empty, and a tail that belongs to none.
const Input laid_out = real({1, 2, 9, 3}), joint_laid_out = real({1, 9, 18});
Tensor bounds(In x) { return from_values<int32_t>({0, 3, 3, 4, 8}, {5}, x[0].device()); }

OpCase packed(const char* variant, bool causal, bool drop) {
  auto options = [=](In x) {
    return AttentionOptions{
        .causal = causal, .offsets = bounds(x), .dropout = drop ? DropoutSite{x[3], 9, 0.3} : DropoutSite{}};
  };
  return OpCase(
             "attention", {laid_out, laid_out, laid_out, state},
             [=](In x) { return attention(x[0], x[1], x[2], options(x)); }, variant)
      .composed([=](In x) { return by_hand(x[0], x[1], x[2], options(x)); });
}

/// Queries of five of the eight positions in two samples; and of three of nine in sequences laid end to end.
const Input some = real({5, 6}), pairs = real({2, 4, 12}), ends = whole({2}, 1, 5, Dtype::i32),
            five = whole({5}, 0, 8, Dtype::i64);
const Input few = real({3, 6}), laid_out_pairs = real({1, 9, 12}), three = whole({3}, 0, 9, Dtype::i64);
AttentionOptions packed_options(In x) {
  return {.causal = true, .offsets = bounds(x), .dropout = DropoutSite{x[3], 9, 0.3}};
}

/// All queries' attention, of which the rows x[2] are taken: what the others hold is not seen.
Tensor of_all(In x, const AttentionOptions& options) {
  const int64_t samples = x[1].size(0), length = x[1].size(1);
  const auto heads = [&](const Tensor& part) { return transpose(reshape(part, {samples, length, 2, 3}), 1, 2); };
  std::vector<Tensor> queries;  // row by row, since one may be named twice
  const std::vector<int64_t> numbers = to_vector<int64_t>(x[2]);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    const Tensor everywhere = expand(slice(x[0], 0, row, row + 1), {samples * length, 6});
    const Tensor out = by_hand(heads(everywhere), heads(slice(x[1], 2, 0, 6)), heads(slice(x[1], 2, 6, 12)), options);
    queries.push_back(slice(reshape(transpose(out, 1, 2), {samples * length, 6}), 0, numbers[i], numbers[i] + 1));
  }
  return concat(queries, 0);
}

OpCase of_rows(const char* variant, bool causal, bool padded, bool drop) {
  auto options = [=](In x) {
    return AttentionOptions{causal, padded ? x[3] : Tensor(), {}, drop ? DropoutSite{x[4], 11, 0.3} : DropoutSite{}};
  };
  return OpCase(
             "self_attention", {some, pairs, five, ends, state},
             [=](In x) { return self_attention(x[0], x[1], x[2], 2, options(x)); }, variant)
      .composed([=](In x) { return of_all(x, options(x)); });
}

const OpTable table({
    separate("", false, false, false),
    separate("scaled", false, false, false, 0.8),
    separate("causal", true, false, false),
    separate("lengths", false, true, false),
    separate("dropout", false, false, true),
    separate("causal, lengths, dropout", true, true, true),
    {"attention", {q}, [](In x) { return attention(x[0], x[0], x[0]); }, "of one tensor"},
    together("", false, false, false),
    together("causal", true, false, false),
    together("lengths, dropout", false, true, true),
    packed("offsets", false, false),
    packed("causal, offsets, dropout", true, true),
    {"self_attention",
     {joint_laid_out},
     [](In x) { return self_attention(x[0], 2, {.offsets = bounds(x)}); },
     "offsets"},
    of_rows("rows", false, false, false),
    of_rows("rows, causal", true, false, false),
    of_rows("rows, causal, lengths, dropout", true, true, true),
    OpCase(
        "self_attention", {few, laid_out_pairs, three, state},
        [](In x) { return self_attention(x[0], x[1], x[2], 2, packed_options(x)); }, "rows, offsets, dropout")
        .composed([](In x) { return of_all(x, packed_options(x)); }),
    {"self_attention",
     {real({batch, 6}), real({batch, 4, 12}), whole({batch}, 0, 4, Dtype::i64)},
     [](In x) { return self_attention(x[0], x[1], x[2], 2); },
     "a row a sample"},
});

}  // namespace

TEST_CASE("attention", "[ops]") { check_ops(); }

TEST_CASE("sequences laid end to end have the bits of each alone", "[ops]") {
  const std::vector<int32_t> bounds{0, 130, 131, 200};
  std::vector<float> values;
  for (int i = 0; i < 203 * 3 * 48; ++i) values.push_back(static_cast<float>(std::sin(0.37 * i)));
  const Tensor qkv = from_values(values, {1, 203, 144});
  const Tensor whole = self_attention(qkv, 3, {.causal = true, .offsets = from_values(bounds, {4})});
  for (size_t n = 0; n + 1 < bounds.size(); ++n) {
    const Tensor alone = self_attention(slice(qkv, 1, bounds[n], bounds[n + 1]), 3, {.causal = true});
    CHECK(to_vector<float>(slice(whole, 1, bounds[n], bounds[n + 1])) == to_vector<float>(alone));
  }
  for (float value : to_vector<float>(slice(whole, 1, 200, 203))) CHECK(value == 0);
}

TEST_CASE("some queries have the bits they have among all", "[ops]") {
  std::vector<float> values;
  for (int i = 0; i < 2 * 130 * 144; ++i) values.push_back(static_cast<float>(std::sin(0.37 * i)));
  const Tensor qkv = from_values(values, {2, 130, 144}), rows = from_values<int64_t>({259, 7, 0, 130, 7, 200, 90}, {7});
  const Tensor lengths = from_values<int32_t>({130, 75}, {2}), state = from_values<int64_t>({5, 9, 3}, {3});
  const auto flat = [](const Tensor& x) { return reshape(x, {260, -1}); };
  const Tensor q = gather_rows(flat(slice(qkv, 2, 0, 48)), rows), kv = slice(qkv, 2, 48, 144);
  for (bool causal : {false, true})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      const AttentionOptions options{causal, lengths, {}, {state, 4, 0.2}};
      const Tensor all = self_attention(cast(qkv, dtype), 3, options),
                   some = self_attention(cast(q, dtype), cast(kv, dtype), rows, 3, options);
      CHECK(to_vector<float>(cast(some, Dtype::f32)) ==
            to_vector<float>(gather_rows(cast(flat(all), Dtype::f32), rows)));
    }
}

TEST_CASE("heads of which three times as many are 2 in 32 bits are refused", "[ops]") {
  CHECK_THROWS_WITH(self_attention(full({2, 3, 12}, 1.0), 1431655766), Catch::Contains("for 1431655766 heads"));
}

TEST_CASE("queries of rows that are no positions, or do not fit, are refused", "[ops]") {
  const Tensor q = full({2, 12}, 1.0), kv = full({2, 4, 24}, 1.0), rows = from_values<int64_t>({7, 0}, {2});
  const auto refused = [&](const Tensor& q, const Tensor& kv, const Tensor& rows, int heads, const std::string& part) {
    CHECK_THROWS_WITH(self_attention(q, kv, rows, heads), Catch::Contains("[self_attention] " + part));
  };
  refused(q, kv, from_values<int64_t>({7, 8}, {2}), 2, "rows are positions in kv, 0 .. 7, given 8");
  refused(q, kv, from_values<int64_t>({-1, 0}, {2}), 2, "rows are positions in kv, 0 .. 7, given -1");
  refused(q, kv, from_values<int64_t>({1}, {1}), 2, "rows[R], one each of f32[2,12]@cpu, given i64[1]");
  refused(q, kv, from_values<int32_t>({1, 0}, {2}), 2, "rows is i64, given i32[2]");
  refused(q, full({2, 4, 36}, 1.0), rows, 2, "kv[B,S,2*heads*D] for q[R,heads*D]: q f32[2,12]@cpu, kv f32[2,4,36]");
  refused(full({1, 2, 12}, 1.0), kv, rows, 2, "q[R,heads*D] for 2 heads, given f32[1,2,12]");
  refused(q, kv, rows, 5, "q[R,heads*D] for 5 heads, given f32[2,12]");
  refused(q, kv, rows, 0, "at least one head, given 0");
  refused(q, cast(kv, Dtype::f64), rows, 2, "kv has the type of f32[2,12]@cpu, given f64[2,4,24]");
  refused({}, kv, rows, 2, "q is a floating-point tensor");
  refused(q, {}, rows, 2, "kv has the type of");
  refused(q, kv, {}, 2, "rows is i64");
}

TEST_CASE("lengths beyond the sample, or below nothing, are refused", "[ops]") {
  const Tensor q = full({2, 3, 4, 5}, 1.0), keys = full({2, 3, 6, 5}, 1.0);
  const auto with = [](int32_t length) { return AttentionOptions{.lengths = from_values<int32_t>({0, length}, {2})}; };
  attention(q, keys, keys, with(6));
  CHECK_THROWS_WITH(attention(q, keys, keys, with(7)), Catch::Contains("[attention] lengths lie in [0, 6], given 7"));
  CHECK_THROWS_WITH(self_attention(full({2, 4, 12}, 1.0), 2, with(-1)),
                    Catch::Contains("[self_attention] lengths lie in [0, 4], given -1"));
}

TEST_CASE("a scale that is 0 as f32 is refused", "[ops]") {
  const Tensor q = full({2, 3, 4, 5}, 1.0);
  CHECK_THROWS_WITH(attention(q, q, q, {.scale = 1e-50}),
                    Catch::Contains("[attention] scale is 0, for 1/sqrt(D), or more than 0 in f32, given 1e-50"));
}

TEST_CASE("positions that do not exist do not reach a gradient that is recorded", "[ops]") {
  using autograd::grad;
  // Each form with numbers beyond what exists, which are no numbers or large.
  const auto gradients = [](const Shape& shape, int64_t begin, float there, const auto& run, bool create_graph) {
    std::vector<float> numbers;
    for (int64_t i = 0; i < shape.numel(); ++i)
      numbers.push_back(i < begin ? static_cast<float>(std::sin(0.7 * static_cast<double>(i))) : there);
    Tensor x = from_values(numbers, shape);
    autograd::require_gradient(x);
    return to_vector<float>(grad({sum(run(x))}, {x}, {.create_graph = create_graph})[0]);
  };
  const auto check = [&](const Shape& shape, int64_t begin, const auto& run) {
    const std::vector<float> plain = gradients(shape, begin, NAN, run, false),
                             recorded = gradients(shape, begin, NAN, run, true),
                             other = gradients(shape, begin, 3, run, true);
    CHECK(recorded == other);
    for (size_t i = 0; i < plain.size(); ++i) {
      CAPTURE(i);
      CHECK(recorded[i] == Approx(plain[i]).margin(1e-6));
      if (static_cast<int64_t>(i) >= begin) CHECK(recorded[i] == 0);
    }
  };
  const Tensor lengths = from_values<int32_t>({2}, {1}), offsets = from_values<int32_t>({0, 1, 2}, {3}),
               rows = from_values<int64_t>({1, 0, 2}, {3});
  const Tensor queries = full({1, 1, 3, 2}, 0.5);
  for (const AttentionOptions& options :
       {AttentionOptions{.lengths = lengths}, AttentionOptions{.offsets = offsets}, AttentionOptions{true, lengths}}) {
    check({1, 1, 3, 2}, 4, [&](const Tensor& x) { return attention(x, x, x, options); });
    check({1, 1, 3, 2}, 4, [&](const Tensor& x) { return attention(queries, x, x, options); });
    check({1, 3, 6}, 12, [&](const Tensor& x) { return self_attention(x, 2, options); });
    const Tensor q = full({3, 2}, 0.5);
    check({1, 3, 4}, 8, [&](const Tensor& x) { return self_attention(q, x, rows, 1, options); });
  }
}
