// Rows of a table by index: gathered, summed, and their gradients scattered in the order of the rows.
#include "cinta/backends/kernels/embedding.h"

#include <cstring>

#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/rows.h"
#include "cinta/backends/cpu/status.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

/// The index itself, or 0 for one that does not exist.
inline int64_t inside(int64_t index, int64_t limit) { return index >= 0 && index < limit ? index : 0; }

void report(void* status, const View& index, int64_t limit) {
  const int64_t* i = index.as<const int64_t>();
  check_indices(
      status, index.numel(), limit, [=](int64_t r) { return i[r]; }, [](int64_t) { return false; });
}

void gather_rows(View y, View table, View index, void* status) {
  const int64_t n = columns_of(y), rows = rows_of(y), limit = table.size(0);
  report(status, index, limit);
  parallel_for(rows, rows_of_tile(n), [&](int64_t begin, int64_t end) {
    float* buffer = y.dtype == table.dtype ? nullptr : scratch<float>(n, Workspace::tile);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t source = inside(index.as<const int64_t>()[r], limit), bytes = n * size_of(y.dtype);
      if (y.dtype == table.dtype) {
        std::memcpy(y.as<char>() + r * bytes, table.as<const char>() + source * bytes, static_cast<size_t>(bytes));
        continue;
      }
      const float* row = read_row(table, source, n, buffer);
      store(y.dtype, y.data, r * n, 1, row, n);
    }
  });
}

/// Columns of one tile of a scatter: every tile walks all rows in order, so sums have one order.
constexpr int64_t scatter_columns = 64;

/// table[index[r]] += dy[r] in columns [first, first + count) of dy; rows of the table lie `stride` apart.
void scatter_columns_of(float* table, int64_t stride, const View& dy, const int64_t* index, int64_t limit, int64_t skip,
                        int64_t first, int64_t count) {
  const int64_t n = columns_of(dy), rows = rows_of(dy);
  float added[scatter_columns];
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t v = index[r];
    if (v < 0 || v >= limit || v == skip) continue;
    const float* in = added;
    if (dy.dtype == Dtype::f32)
      in = dy.as<const float>() + r * n + first;
    else
      load(added, dy.dtype, dy.data, r * n + first, 1, count);
    float* out = table + v * stride;
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) out[j] += in[j];
  }
}

void scatter_add_rows(View dtable, View dy, View index, int64_t skip, float beta) {
  const int64_t n = columns_of(dtable), limit = rows_of(dtable);
  const int64_t* target = index.as<const int64_t>();
  const int64_t column_tiles = (n + scatter_columns - 1) / scatter_columns;
  const bool in_place = dtable.dtype == Dtype::f32;
  if (in_place && beta != 1)
    parallel_for(limit, rows_of_tile(n), [&](int64_t begin, int64_t end) {
      float* row = dtable.as<float>() + begin * n;
      for (int64_t i = 0; i < (end - begin) * n; ++i) row[i] = beta == 0 ? 0 : row[i] * beta;
    });
  parallel_for(column_tiles, 1, [&](int64_t tile, int64_t) {
    const int64_t first = tile * scatter_columns, count = std::min(scatter_columns, n - first);
    if (in_place) return scatter_columns_of(dtable.as<float>() + first, n, dy, target, limit, skip, first, count);
    // A sum of many rows in 16 bits would round with each, and stop growing.
    const WorkspaceBlock room(limit * count * static_cast<int64_t>(sizeof(float)));  // much, of a large table
    float* const sums = static_cast<float*>(room.data());
    std::fill_n(sums, limit * count, 0.0f);
    for (int64_t v = 0; beta != 0 && v < limit; ++v) {
      load(sums + v * count, dtable.dtype, dtable.data, v * n + first, 1, count);
      for (int64_t j = 0; j < count; ++j) sums[v * count + j] *= beta;
    }
    scatter_columns_of(sums, count, dy, target, limit, skip, first, count);
    for (int64_t v = 0; v < limit; ++v) store(dtable.dtype, dtable.data, v * n + first, 1, sums + v * count, count);
  });
}

void embedding_sum(View y, View word, View position, View type, View ids, View types, View places, int64_t sequence,
                   void* status) {
  const int64_t n = columns_of(y);
  report(status, ids, word.size(0));
  if (types) report(status, types, type.size(0));
  if (places) report(status, places, position.size(0));
  parallel_for(rows_of(y), rows_of_tile(n), [&](int64_t begin, int64_t end) {
    float* buffer = scratch<float>(4 * n, Workspace::tile);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t kind = types ? inside(types.as<const int64_t>()[r], type.size(0)) : 0;
      const int64_t place = places ? inside(places.as<const int64_t>()[r], position.size(0)) : r % sequence;
      const float* a = read_row(word, inside(ids.as<const int64_t>()[r], word.size(0)), n, buffer);
      const float* b = read_row(position, place, n, buffer + n);
      const float* c = read_row(type, kind, n, buffer + 2 * n);
      float* out = row_target(y, r, n, buffer + 3 * n);
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) out[j] = a[j] + b[j] + c[j];
      finish_row(y, r, n, out);
    }
  });
}

const InstallSimd gather{kernels::gather_rows, gather_rows, floats_of_32_bits};
const InstallSimd scatter{kernels::scatter_add_rows, scatter_add_rows, floats_of_32_bits};
const InstallSimd sum{kernels::embedding_sum, embedding_sum, floats_of_32_bits};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
