// Sums over rows, column by column, in a fixed order: rows are cut into chunks by the sizes alone, each chunk adds up
// in float, the chunks are combined in order in double.
#pragma once
#include <algorithm>

#include "cinta/backends/cpu/layout.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/convert.h"
#include "cinta/backends/cpu/simd/lanes.h"

#include "cinta/backends/cpu/isa_begin.h"

/// Columns of one block at most: whole rows of all but the largest models, so that memory is read as it lies, and what
/// is fetched ahead is what comes next; little enough that their sums stay in the caches of a core.
inline constexpr int64_t column_block = 4096;

/// Columns of one block: fewer where there would be few blocks in all, so that more threads have something to do.
inline int64_t columns_of_block(int64_t chunks, int64_t columns) {
  return chunks < 16 && chunks * (columns / column_block) < 32 ? column_block / 4 : column_block;
}

/// Columns that a body sees at once: few enough that the next ones are fetched while these are computed.
inline constexpr int64_t column_step = 256;

/// Rows of one chunk.
inline int64_t row_chunk(int64_t columns) {
  return std::clamp<int64_t>(65536 / std::max<int64_t>(1, columns), 32, 512);
}

/// y = the partial results of all chunks combined in order, + beta * y. `layout` is a loop nest that has y as its view
/// `number`; partial[chunk * layout.count + k] belongs to its element k.
template <class Op, class T>
void combine(const View& y, const Layout& layout, int number, const T* partial, int64_t chunks, float beta) {
  const int64_t row = layout.row(), stride = layout.strides[number][layout.rank - 1];
  constexpr int64_t most = 1024;
  parallel_for(layout.count, elements_of_tile, [&](int64_t begin, int64_t end) {
    double results[most], old[most];
    for (int64_t at = begin; at < end;) {
      const int64_t count = std::min({end - at, row - at % row, most}), first = layout.offset(number, at);
      std::fill_n(results, count, Op::start);
      for (int64_t c = 0; c < chunks; ++c)
        for (int64_t j = 0; j < count; ++j)
          results[j] = Op::merge(results[j], double{partial[c * layout.count + at + j]});
      if (beta != 0) {
        load(old, y.dtype, y.data, first, stride, count);
        for (int64_t j = 0; j < count; ++j) results[j] += beta * old[j];
      }
      store(y.dtype, y.data, first, stride, results, count);
      at += count;
    }
  });
}

/// For every row and block of columns of a matrix, on all threads: body(row, first column, count, lanes), count <=
/// column_step, which adds what it likes to lanes[0..count). Then sums[columns] (which may be absent) = the lanes over
/// all rows + beta * sums.
template <class Body>
void column_sums(int64_t rows, int64_t columns, const View& sums, float beta, const Body& body) {
  const int64_t chunk = std::min(row_chunk(columns), std::max<int64_t>(32, (rows + 3) / 4)),  // few rows have two, too
      chunks = (rows + chunk - 1) / chunk;
  const int64_t block = columns_of_block(chunks, columns), blocks = (columns + block - 1) / block;
  float* partial = sums ? scratch<float>(chunks * columns, Workspace::call) : nullptr;
  parallel_for(chunks * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      const int64_t c = job / blocks, first = job % blocks * block, count = std::min(block, columns - first);
      float lanes[column_block];
      std::fill_n(lanes, count, 0.0f);
      for (int64_t row = c * chunk; row < std::min(rows, (c + 1) * chunk); ++row)
        for (int64_t j = 0; j < count; j += column_step)
          body(row, first + j, std::min(column_step, count - j), lanes + j);
      if (partial) std::copy_n(lanes, count, partial + c * columns + first);
    }
  });
  if (sums && columns) combine<Sum>(sums, Layout{sums}, 0, partial, chunks, beta);
}

#include "cinta/backends/cpu/isa_end.h"
