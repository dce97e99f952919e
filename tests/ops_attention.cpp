// Rows of the op table: attention.
#include <catch2/catch.hpp>

#include "cinta/ops/attention.h"
#include "cinta/ops/dropout.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/matmul.h"
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
  const Tensor end = options.lengths ? reshape(options.lengths, {q.size(0), 1, 1, 1}) : Tensor();
  if (end) scores = cinta::where(less(key, end), scores, low);
  const Tensor out = matmul(dropout(softmax(scores), options.dropout), v);
  return end ? cinta::where(less(query, end), out, zero) : out;
}

OpCase separate(const char* variant, bool causal, bool padded, bool drop, double scale = 0) {
  auto options = [=](In x) {
    return AttentionOptions{causal, padded ? x[3] : Tensor(), drop ? DropoutSite{x[4], 9, 0.3} : DropoutSite{}, scale};
  };
  return OpCase(
             "attention", {q, k, k, lengths, state}, [=](In x) { return attention(x[0], x[1], x[2], options(x)); },
             variant)
      .composed([=](In x) { return by_hand(x[0], x[1], x[2], options(x)); });
}

OpCase together(const char* variant, bool causal, bool padded, bool drop) {
  auto options = [=](In x) {
    return AttentionOptions{causal, padded ? x[1] : Tensor(), drop ? DropoutSite{x[2], 9, 0.3} : DropoutSite{}};
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
});

}  // namespace

TEST_CASE("attention", "[ops]") { check_ops(); }
