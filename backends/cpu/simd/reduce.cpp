// Reductions. The loop nest is split into the kept and the reduced dimensions; where the fastest of all is reduced,
// rows are summed, otherwise columns. Long reductions are cut into fixed chunks whose results are combined in order.
#include <algorithm>
#include <cmath>

#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/columns.h"
#include "cinta/backends/cpu/simd/map.h"
#include "cinta/backends/cpu/simd/rows.h"
#include "cinta/backends/kernels/reduce.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

constexpr int64_t piece = 512;  // elements converted, or reduced as floats, at once: their results merge in f64

/// `view` with the dimensions where y has (kept) or has not (reduced) the size of x.
View part(const View& view, const View& x, const View& y, bool kept) {
  View out{view.data, {}, {}, view.dtype, true};
  for (int dim = 0; dim < x.rank(); ++dim) {
    if ((y.shape[dim] == x.shape[dim]) != kept) continue;
    out.shape.push_back(x.shape[dim]);
    out.strides.push_back(view.strides[dim]);
  }
  return out;
}

struct Nest {
  Nest(const View& y, const View& x)
      : kept{part(x, x, y, true), part(y, x, y, true)}, reduced{part(x, x, y, false)}, x(x), y(y) {}
  Layout kept;     ///< of x and y
  Layout reduced;  ///< of x
  View x, y;
};

/// Reads `count` elements of x where they lie if they are T side by side, else converted into `buffer`.
template <class T>
const T* read(const View& x, int64_t first, int64_t stride, int64_t count, T* buffer) {
  if (x.dtype == dtype_of<T>() && stride == 1) return x.as<const T>() + first;
  load(buffer, x.dtype, x.data, first, stride, count);
  return buffer;
}

/// The reduction of elements [begin, end) of the reduced dimensions, from `origin` on.
template <class Op, class T>
double reduce_range(const View& x, const Layout& layout, int64_t origin, int64_t begin, int64_t end) {
  const int64_t row = layout.row(), stride = layout.strides[0][layout.rank - 1];
  const bool in_place = x.dtype == Dtype::f32 && stride == 1;
  double result = Op::start;
  for (int64_t at = begin; at < end;) {
    const int64_t count = std::min({end - at, row - at % row, piece});
    const int64_t first = origin + layout.offset(0, at);
    T buffer[piece], part;
    if (in_place) {
      part = reduce_array_in<Op, T>(x.as<const float>() + first, count);
    } else {
      load(buffer, x.dtype, x.data, first, stride, count);
      part = reduce_array<Op>(buffer, count);
    }
    result = Op::merge(result, static_cast<double>(part));
    at += count;
  }
  return result;
}

/// partial[chunk * kept + k] for the case that the fastest dimension is reduced.
template <class Op, class T>
void reduce_rows(const Nest& nest, int64_t chunk, int64_t chunks, double* partial) {
  const int64_t total = nest.reduced.count, kept = nest.kept.count;
  parallel_for(kept * chunks, rows_of_tile(std::min(chunk, total)), [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      const int64_t k = job / chunks, c = job % chunks;
      partial[c * kept + k] = reduce_range<Op, T>(nest.x, nest.reduced, nest.kept.offset(0, k), c * chunk,
                                                  std::min(total, (c + 1) * chunk));
    }
  });
}

/// The same where the fastest dimension is kept: blocks of columns, each over one chunk of the reduced elements.
template <class Op, class T>
void reduce_columns(const Nest& nest, int64_t chunk, int64_t chunks, T* partial) {
  const int64_t total = nest.reduced.count, kept = nest.kept.count, columns = nest.kept.row();
  const int64_t stride = nest.kept.strides[0][nest.kept.rank - 1], columns_at_once = columns_of_block(chunks, columns),
                blocks = (columns + columns_at_once - 1) / columns_at_once;
  const int64_t jobs = kept / columns * blocks * chunks;
  const int64_t job_size = std::max<int64_t>(1, std::min(chunk, total) * std::min(columns, columns_at_once));
  parallel_for(jobs, rows_of_tile(job_size), [&](int64_t begin, int64_t end) {
    T lanes[column_block], buffer[column_block];
    for (int64_t job = begin; job < end; ++job) {
      const int64_t block = job % blocks, c = job / blocks % chunks, outer = job / blocks / chunks;
      const int64_t first = outer * columns + block * columns_at_once,
                    count = std::min(columns_at_once, columns - block * columns_at_once);
      const int64_t origin = nest.kept.offset(0, first);
      std::fill_n(lanes, count, static_cast<T>(Op::start));
      const int64_t end = std::min(total, (c + 1) * chunk);
      const auto add = [&](const auto& values, int64_t from, int64_t to) {
#pragma omp simd
        for (int64_t j = from; j < to; ++j) lanes[j] = Op::add(lanes[j], static_cast<T>(values[j]));
      };
      // In steps, so that the next row is fetched while this one is added (into the second-level cache, which gains 1
      // to 3 % over the first: more lines are under way); where it follows, it comes by itself.
      const auto add_fetching = [&](const auto& values, const auto* coming) {
        for (int64_t j = 0; j < count; j += column_step) {
          const int64_t to = std::min(count, j + column_step);
          if (coming) prefetch_far(coming + j, (to - j) * static_cast<int64_t>(sizeof *coming));
          add(values, j, to);
        }
      };
      const bool side_by_side = stride == 1;
      const auto* halves = nest.x.dtype == Dtype::bf16 && side_by_side ? nest.x.as<const bf16>() : nullptr;
      const auto* floats = nest.x.dtype == Dtype::f32 && side_by_side ? nest.x.as<const float>() : nullptr;
      for (int64_t r = c * chunk, row = origin + nest.reduced.offset(0, r), next; r < end; ++r, row = next) {
        next = r + 1 < end ? origin + nest.reduced.offset(0, r + 1) : row;
        const bool fetches = next != row && next != row + count;
        if (halves)
          add_fetching(Values<bf16>{halves + row}, fetches ? halves + next : nullptr);
        else if (floats)
          add_fetching(floats + row, fetches ? floats + next : nullptr);
        else
          add(read(nest.x, row, stride, count, buffer), 0, count);
      }
      std::copy_n(lanes, count, partial + c * kept + first);
    }
  });
}

template <class Op, class T>
void reduce(const View& y, const View& x, float beta) {
  const Nest nest(y, x);
  const Layout &kept = nest.kept, &reduced = nest.reduced;
  if (kept.count == 0) return;
  const bool rows =
      reduced.count > 1 && (kept.count == 1 || reduced.strides[0][reduced.rank - 1] < kept.strides[0][kept.rank - 1]);
  const int64_t chunk = rows ? elements_of_tile / 2 : row_chunk(kept.row());
  const int64_t chunks = (reduced.count + chunk - 1) / chunk;
  if (rows) {
    double* partial = scratch<double>(kept.count * chunks, Workspace::call);
    reduce_rows<Op, T>(nest, chunk, chunks, partial);
    combine<Op>(y, kept, 1, partial, chunks, beta);
  } else {
    T* partial = scratch<T>(kept.count * chunks, Workspace::call);
    reduce_columns<Op, T>(nest, chunk, chunks, partial);
    combine<Op>(y, kept, 1, partial, chunks, beta);
  }
}

template <class Op>
void reduce_any(View y, View x, float beta) {
  fits_float(x.dtype) ? reduce<Op, float>(y, x, beta) : reduce<Op, double>(y, x, beta);
}

/// The first of `count` values that is `wanted`, or NaN where that is NaN; one of them is.
template <class T>
int64_t first_place(const T* values, int64_t count, T wanted) {
  const bool nan = wanted != wanted;
  const auto end = static_cast<int32_t>(count);
  int32_t place = end;
#pragma omp simd reduction(min : place)
  for (int32_t i = 0; i < end; ++i) {
    const bool is = (values[i] == wanted) | (nan & (values[i] != values[i]));
    place = std::min(place, is ? i : end);
  }
  return place;
}

template <class T>
void find_largest(const View& y, const View& x, int dim) {
  const Nest nest(y, x);
  const int64_t n = x.size(dim), stride = x.stride(dim);
  if (n == 0) return;
  parallel_for(nest.kept.count, rows_of_tile(n), [&](int64_t begin, int64_t end) {
    T buffer[piece];
    for (int64_t k = begin; k < end; ++k) {
      const int64_t origin = nest.kept.offset(0, k);
      int64_t best = 0;
      T largest{};
      for (int64_t at = 0; at < n; at += piece) {
        const int64_t count = std::min(piece, n - at);
        const T* values = read(x, origin + at * stride, stride, count, buffer);
        if (at == 0) largest = values[0];
        const T top = reduce_array<Max>(values, count);
        if (top <= largest || std::isnan(largest)) continue;
        largest = top;
        best = at + first_place(values, count, top);
      }
      store(y.dtype, y.data, nest.kept.offset(1, k), 1, &best, 1);
    }
  });
}

void argmax_row(View y, View x, int dim) {
  fits_float(x.dtype) ? find_largest<float>(y, x, dim) : find_largest<double>(y, x, dim);
}

void sum_of_squares_row(View y, View x) {
  const Layout layout{x};
  const int64_t chunks = (layout.count + elements_of_tile - 1) / elements_of_tile;
  double* partial = scratch<double>(chunks + 1, Workspace::call);
  parallel_for(layout.count, elements_of_tile, [&](int64_t begin, int64_t end) {
    partial[begin / elements_of_tile] = reduce_range<SumOfSquares, double>(x, layout, 0, begin, end);
  });
  const double total = reduce_array<Sum>(partial, chunks);
  store(y.dtype, y.data, 0, 1, &total, 1);
}

const InstallSimd sum{kernels::sum, reduce_any<Sum>};
const InstallSimd max{kernels::max, [](View y, View x) { reduce_any<Max>(y, x, 0); }};
const InstallSimd argmax{kernels::argmax, argmax_row};
const InstallSimd sum_of_squares{kernels::sum_of_squares, sum_of_squares_row};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
