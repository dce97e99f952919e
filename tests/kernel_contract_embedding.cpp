// Contracts of the rows that read tables by index.
#include <catch2/catch.hpp>

#include "cinta/backends/kernels/embedding.h"
#include "contract/contract.h"

using namespace cinta;
using namespace cinta::contract;

namespace {

struct Lookup {
  int64_t rows, table, columns;
};
const Lookup lookups[] = {{0, 3, 4},     {1, 1, 1},   {7, 5, 3},    {17, 4, 17},
                          {63, 100, 33}, {5, 3, 257}, {130, 7, 16}, {2, 9, 1000}};

/// True for the elements of the rows listed.
std::vector<bool> rows_open(const Lookup& l, std::initializer_list<int64_t> rows) {
  std::vector<bool> open(static_cast<size_t>(l.rows * l.columns), false);
  for (int64_t row : rows)
    for (int64_t j = 0; j < l.columns; ++j) open[row * l.columns + j] = true;
  return open;
}

void try_gather(const Lookup& l, Dtype dtype, Layout layout, const Values& indices, bool bad = false) {
  Trial trial(kernels::gather_rows,
              join(dtype, " ", l.rows, " of ", Shape{l.table, l.columns}, " layout ", int(layout)));
  trial.accuracy.exact = true;
  const Handle table = trial.input({l.table, l.columns}, dtype, uniform(l.table * l.columns, -3, 3), layout);
  const Handle index = trial.input({l.rows}, Dtype::i64, indices), y = trial.output({l.rows, l.columns}, dtype, layout);
  trial.run([&](const Call& c) { kernels::gather_rows(c.device, c(y), c(table), c(index), c.status); }, bad);
}

void gather_contract() {
  for (Dtype dtype : trained_types)
    for (const Lookup& l : lookups)
      for (Layout layout : contiguous_layouts) try_gather(l, dtype, layout, whole(l.rows, 0, l.table));
  for (double bad : {-1.0, 5.0, 1e15, -1e15}) try_gather({4, 5, 33}, Dtype::f32, Layout::dense, {0, bad, 4, 1}, true);
}

void try_scatter(const Lookup& l, Dtype from, Dtype to, int64_t skip, float beta, const Values& indices) {
  Trial trial(kernels::scatter_add_rows,
              join(from, " to ", to, " ", l.rows, " into ", Shape{l.table, l.columns}, " skip ", skip, " beta ", beta));
  trial.accuracy.length = l.rows;
  const Shape shape{l.table, l.columns};
  const Handle out = beta == 0 ? trial.output(shape, to) : trial.both(shape, to, uniform(shape, -3, 3, 4));
  const Handle dy = trial.input({l.rows, l.columns}, from, uniform(l.rows * l.columns, -3, 3));
  const Handle index = trial.input({l.rows}, Dtype::i64, indices);
  trial.run([&](const Call& c) { kernels::scatter_add_rows(c.device, c(out), c(dy), c(index), skip, beta); });
}

void scatter_contract() {
  for (Dtype dtype : trained_types)
    for (const Lookup& l : lookups)
      for (float beta : {0.0f, 1.0f, 0.5f}) {
        try_scatter(l, dtype, Dtype::f32, -1, beta, whole(l.rows, 0, l.table));
        try_scatter(l, dtype, Dtype::f32, 0, beta, whole(l.rows, 0, l.table));
        try_scatter(l, dtype, Dtype::f32, -1, beta,
                    Values(static_cast<size_t>(l.rows), static_cast<double>(l.table - 1)));
        if (dtype != Dtype::f32) try_scatter(l, dtype, dtype, 0, beta, whole(l.rows, 0, l.table));
      }
  // Many rows of one index: a sum that rounds each time, to 8 or 11 bits, is far from theirs.
  for (Dtype dtype : trained_types) try_scatter({3000, 3, 5}, dtype, dtype, -1, 1, whole(3000, 0, 2));
}

void try_embedding_sum(const Lookup& l, int64_t sequence, Dtype dtype, bool with_types, double bad_id = 0,
                       double bad_place = 0) {
  Trial trial(kernels::embedding_sum, join(dtype, " ", l.rows, " x ", l.columns, " sequence ", sequence));
  const Handle word = trial.input({l.table, l.columns}, dtype, uniform(l.table * l.columns, -3, 3));
  const Handle position = trial.input({sequence + 2, l.columns}, dtype, uniform((sequence + 2) * l.columns, -3, 3, 2));
  const Handle type = trial.input({2, l.columns}, dtype, uniform(2 * l.columns, -3, 3, 3));
  Values id_values = whole(l.rows, 0, l.table, 4);
  if (bad_id != 0) id_values[1] = bad_id;
  const Handle ids = trial.input({l.rows}, Dtype::i64, id_values);
  const Handle types = with_types ? trial.input({l.rows}, Dtype::i64, whole(l.rows, 0, 2, 5)) : Handle{};
  Values place_values = whole(l.rows, 0, sequence + 2, 6);
  if (bad_place != 0) place_values[1] = bad_place;
  const Handle places = with_types ? trial.input({l.rows}, Dtype::i64, place_values) : Handle{};
  const Handle y = trial.output({l.rows, l.columns}, dtype);
  const bool bad = bad_id != 0 || bad_place != 0;
  if (bad) trial.leave_open(y, rows_open(l, {1}));
  trial.run(
      [&](const Call& c) {
        kernels::embedding_sum(c.device, c(y), c(word), c(position), c(type), c(ids), c(types), c(places), sequence,
                               c.status);
      },
      bad);
}

void embedding_sum_contract() {
  for (Dtype dtype : trained_types)
    for (int64_t columns : {1, 7, 16, 33, 257, 1000})
      for (bool with_types : {false, true}) {
        try_embedding_sum({12, 9, columns}, 4, dtype, with_types);
        try_embedding_sum({0, 9, columns}, 4, dtype, with_types);
        try_embedding_sum({7, 2, columns}, 7, dtype, with_types);
      }
  for (double bad : {-1.0, 9.0}) try_embedding_sum({12, 9, 33}, 4, Dtype::f32, true, bad);
  for (double bad : {-1.0, 6.0}) try_embedding_sum({12, 9, 33}, 4, Dtype::f32, true, 0, bad);
}

const Contract gather_here{{&kernels::gather_rows}, gather_contract};
const Contract scatter_here{{&kernels::scatter_add_rows}, scatter_contract};
const Contract embedding_sum_here{{&kernels::embedding_sum}, embedding_sum_contract};

}  // namespace

TEST_CASE("contracts of the rows that read tables by index", "[kernel_contract]") { check_contracts(); }
