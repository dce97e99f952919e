// Rows of the op table: rows of tables by index.
#include <catch2/catch.hpp>

#include "cinta/autograd/tape.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/embedding.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "data_helpers.h"
#include "op_table.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

using In = const Operands&;

const Input words = real({7, 4}), places = real({6, 4}), kinds = real({2, 4}), ids = whole({batch, 5}, 0, 7),
            types = whole({batch, 5}, 0, 2), at = whole({batch, 5}, 0, 6);

/// table[index] as a product with the matrix of 0s and 1s.
Tensor gathered(const Tensor& table, const Tensor& index) {
  std::vector<int64_t> rows(static_cast<size_t>(table.size(0)));
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
  const Tensor hits = equal(unsqueeze(index, -1), from_values(rows, {table.size(0)}, index.device()));
  return matmul(cast(hits, table.dtype()), table);
}

const OpTable table({
    OpCase("gather_rows", {words, ids}, [](In x) { return gather_rows(x[0], x[1]); }).composed([](In x) {
      return gathered(x[0], x[1]);
    }),
    {"gather_rows", {words, whole({}, 2, 3)}, [](In x) { return gather_rows(x[0], x[1]); }, "one row"},
    {"embedding", {words, ids}, [](In x) { return embedding(x[0], x[1]); }},
    {"index_select", {real({batch, 5, 2}), whole({4}, 0, 5)}, [](In x) { return index_select(x[0], 1, x[1]); }},
    {"index_select", {real({5, 2}), whole({batch}, 0, 5)}, [](In x) { return index_select(x[0], 0, x[1]); }, "rows"},
    OpCase("embedding_sum", {words, places, kinds, ids, types},
           [](In x) { return embedding_sum(x[0], x[1], x[2], x[3], x[4]); })
        .composed([](In x) { return gathered(x[0], x[3]) + slice(x[1], 0, 0, 5) + gathered(x[2], x[4]); }),
    OpCase(
        "embedding_sum", {words, places, kinds, ids, types, at},
        [](In x) { return embedding_sum(x[0], x[1], x[2], x[3], x[4], x[5]); }, "at places")
        .composed([](In x) { return gathered(x[0], x[3]) + gathered(x[1], x[5]) + gathered(x[2], x[4]); }),
    OpCase(
        "embedding_sum", {words, real({5, 4}), kinds, ids}, [](In x) { return embedding_sum(x[0], x[1], x[2], x[3]); },
        "without types")
        .composed([](In x) { return gathered(x[0], x[3]) + x[1] + slice(x[2], 0, 0, 1); }),
});

}  // namespace

TEST_CASE("embeddings", "[ops]") { check_ops(); }

TEST_CASE("the padding row gets no gradient, nor a gradient of a gradient", "[ops]") {
  for (Device device : {cpu, reference}) {
    Tensor table = full({3, 2}, 1, Dtype::f32, device);
    autograd::require_gradient(table);
    const Tensor index = from_values<int64_t>({0, 2, 2, 1}, {4}, device);
    const Tensor y = embedding(table, index, 2);
    autograd::backward(sum(y), {.retain_graph = true});
    CHECK(to_vector<double>(autograd::gradient(table)) == std::vector<double>{1, 1, 1, 1, 0, 0});

    Tensor dy = full({4, 2}, 1, Dtype::f32, device);
    autograd::require_gradient(dy);
    const Tensor first = autograd::grad({y}, {table}, {.create_graph = true, .seeds = {dy}})[0];
    const Tensor second = autograd::grad({sum(first)}, {dy})[0];
    CHECK(to_vector<double>(second) == std::vector<double>{1, 1, 0, 0, 0, 0, 1, 1});
  }
}

TEST_CASE("a row to be left out is one of the table", "[ops]") {
  for (const Device device : {cpu, reference, meta}) {
    const Tensor table = full({3, 2}, 1, Dtype::f32, device), index = full({1, 2}, 0, Dtype::i64, device);
    for (const int64_t skip : {3, 5, -2}) {
      CHECK_THAT(error_of<ValueError>([&] { embedding(table, index, skip); }),
                 Catch::StartsWith(join("[embedding] skip is a row of table, or -1 for none, given ", skip)));
      CHECK_THAT(error_of<ValueError>([&] { embedding_sum(table, table, table, index, {}, {}, skip); }),
                 Catch::StartsWith(join("[embedding_sum] skip is a row of word, or -1 for none, given ", skip)));
    }
    CHECK_NOTHROW(embedding(table, index, 2));
    CHECK_NOTHROW(embedding(table, index, -1));
  }
}

TEST_CASE("gradients of a table are added to the ones that are there", "[ops]") {
  for (Device device : {cpu, reference}) {
    Tensor word = full({3, 2}, 1, Dtype::f32, device), position = full({4, 2}, 1, Dtype::f32, device),
           type = full({2, 2}, 1, Dtype::f32, device);
    for (Tensor* table : {&word, &position, &type}) autograd::require_gradient(*table);
    const Tensor ids = from_values<int64_t>({0, 2, 2, 1}, {2, 2}, device);
    for (int i = 0; i < 2; ++i) autograd::backward(sum(embedding_sum(word, position, type, ids)));
    CHECK(to_vector<double>(autograd::gradient(word)) == std::vector<double>{2, 2, 2, 2, 4, 4});
    CHECK(to_vector<double>(autograd::gradient(position)) == std::vector<double>{4, 4, 4, 4, 0, 0, 0, 0});
    CHECK(to_vector<double>(autograd::gradient(type)) == std::vector<double>{8, 8, 0, 0});
  }
}

TEST_CASE("an index outside the table is thrown with op and place", "[ops]") {
  for (Device device : {cpu, reference}) {
    const Tensor table = full({3, 2}, 1, Dtype::f32, device), bad = from_values<int64_t>({0, -1}, {2}, device);
    const std::string error = error_of<ValueError>([&] { gather_rows(table, bad); });
    CHECK(error.find("[gather_rows] index -1 at position 1 is outside [0, 3)") == 0);
    CHECK(error.find("ops_embedding.cpp:") != std::string::npos);
    const Tensor ids = from_values<int64_t>({0, 1, 3, 2}, {2, 2}, device);
    CHECK(error_of<ValueError>([&] {
            embedding_sum(table, table, table, ids);
          }).find("[embedding_sum] index 3 at position 2 is outside [0, 3)") == 0);
  }
}
