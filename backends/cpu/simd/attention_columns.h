// Attention's scores while they are made probabilities: a row holds one key's, so that sums over keys run down columns
// and no vector is ever folded. And what is fetched meanwhile.
#pragma once
#include <algorithm>

#include "cinta/backends/cpu/simd/attention.h"
#include "cinta/backends/cpu/simd/lanes.h"
#include "cinta/backends/cpu/simd/math.h"

#include "cinta/backends/cpu/isa_begin.h"

/// Queries that are computed side by side.
inline constexpr int64_t lanes = panel_columns;

/// Keys that some queries of a block see, `lanes` of them from query `first` on, and what of their scores is hidden.
/// Scores are columns here: a row holds one key's.
struct Seen {
  int64_t by_all, by_some;
  int32_t by_each[lanes];

  Seen(const Head& h, int64_t first, int64_t count) : by_all(h.seen_by(first)), by_some(h.seen_by(first + count - 1)) {
    for (int64_t j = 0; j < lanes; ++j) by_each[j] = static_cast<int32_t>(h.seen_by(first + std::min(j, count - 1)));
  }
  /// What a query does not see becomes -infinity.
  void hide(float* scores, int64_t stride) const {
    for (int64_t t = by_all; t < by_some; ++t)
      for (int64_t j = 0; j < lanes; ++j)
        if (t >= by_each[j]) scores[t * stride + j] = -math::infinity;
  }
  /// What none sees becomes 0, up to row `rows`.
  void clear(float* scores, int64_t stride, int64_t rows) const {
    for (int64_t t = by_some; t < rows; ++t) std::fill_n(scores + t * stride, lanes, 0.0f);
  }
};

/// The largest of each column, NaN aside.
inline void largest_of_columns(float* largest, const float* scores, int64_t stride, int64_t rows) {
  float most[lanes];
  std::fill_n(most, lanes, -math::infinity);
  for (int64_t t = 0; t < rows; ++t)
#pragma omp simd
    for (int64_t j = 0; j < lanes; ++j) most[j] = MaxOfNumbers::add(most[j], scores[t * stride + j]);
  std::copy_n(most, lanes, largest);
}

/// sum[j] = the sum of row(t)(j) for t < rows; a term may also write down what it computed. Of 32 rows at a time first,
/// which keeps rounding errors small.
template <class Row>
void sum_columns(float* sum, int64_t rows, Row row) {
  std::fill_n(sum, lanes, 0.0f);
  for (int64_t t = 0; t < rows;) {
    float part[lanes]{};
    for (const int64_t end = std::min(rows, t + 32); t < end; ++t) {
      const auto term = row(t);
#pragma omp simd
      for (int64_t j = 0; j < lanes; ++j) part[j] += term(j);
    }
#pragma omp simd
    for (int64_t j = 0; j < lanes; ++j) sum[j] += part[j];
  }
}

/// The factors of dropout of queries, as their scores lie.
struct Factors {
  static int64_t room(int64_t keys) { return 2 * lanes * round_up(keys, vector_width); }

  Factors(float* room, int64_t keys)
      : keys(round_up(keys, vector_width)), drawn(room), columns(room + lanes * round_up(keys, vector_width)) {}
  /// Of `count` queries from query `first` on.
  void draw(const Head& h, const DropoutRecord& site, int64_t first, int64_t count) const {
    const int64_t width = round_up(h.seen_by(first + count - 1), vector_width);
    for (int64_t j = 0; j < lanes; ++j) {
      const int64_t query = first + j, seen = j < count ? h.seen_by(query) : 0;
      if (j < count) {
        const int64_t number = (site.first_row + h.position(query)) * h.factors_of_row + h.first_factor;
        dropout_factors(drawn + j * keys, site, static_cast<uint64_t>(number), seen);
      }
      std::fill(drawn + j * keys + seen, drawn + j * keys + width, 0.0f);
    }
    for (int64_t t = 0; t < width; t += vector_width)
      for (int64_t j = 0; j < lanes; j += vector_width)
        transpose_block(columns + t * lanes + j, lanes, drawn + j * keys + t, keys);
  }
  const float* row(int64_t key) const { return columns + key * lanes; }

 private:
  int64_t keys;
  float *drawn, *columns;
};

/// Rows of heads are pieces that lie too far apart for the machine to see which comes next. A few of these are fetched,
/// or asked for where they will be written, whenever fetch() is called: all of them in some `calls`.
class RowsAhead {
 public:
  void read(const Matrix& m, int64_t rows, const int64_t* order = nullptr) { add({m, rows, order, false}); }
  void write(const Matrix& m, int64_t rows, const int64_t* order = nullptr) { add({m, rows, order, true}); }
  /// Eight at once at most: what few queries of a long sequence fetched would push the rest out of the caches.
  void spread(int64_t row_bytes, int64_t calls) {
    bytes = row_bytes;
    at_once = std::min<int64_t>(8, (all_rows + calls - 1) / std::max<int64_t>(1, calls));
  }
  [[gnu::always_inline]] void fetch() {
    for (int64_t i = 0; i < at_once; ++i, ++row) {
      while (part < parts && row == part_of[part].rows) ++part, row = 0;
      if (part == parts) return;
      const Part& p = part_of[part];
      char* const data = static_cast<char*>(p.m.data) + (p.order ? p.order[row] : row) * p.m.row * size_of(p.m.dtype);
      p.written ? prefetch_to_write(data, bytes) : prefetch_far(data, bytes);
    }
  }

 private:
  struct Part {
    Matrix m;
    int64_t rows;
    const int64_t* order;
    bool written;
  };
  void add(const Part& next) {
    part_of[parts++] = next;
    all_rows += next.rows;
  }
  Part part_of[7];
  int parts = 0, part = 0;
  int64_t row = 0, all_rows = 0, bytes = 0, at_once = 0;
};

#include "cinta/backends/cpu/isa_end.h"
