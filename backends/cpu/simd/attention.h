// One head of one sequence as attention's kernels see it: what exists, how queries are cut into blocks, the mask.
#pragma once
#include <algorithm>
#include <cstring>
#include <numeric>

#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/amx_tile.h"
#include "cinta/backends/cpu/simd/random.h"
#include "cinta/backends/cpu/simd/words.h"
#include "cinta/backends/kernels/attention.h"

#include "cinta/backends/cpu/isa_begin.h"

/// The matrix [S,D] of one head in a view [B,H,S,D], from position `begin` on.
inline Matrix head_of(const View& all, int64_t sample, int64_t head, int64_t begin) {
  const int64_t offset = sample * all.stride(0) + head * all.stride(1) + begin * all.stride(2);
  return {all.as<char>() + offset * size_of(all.dtype), all.stride(2), 1, all.dtype};
}

/// Rows first .. first + exists of a head's matrix, or those that `order` names, = values; from there to first + rows
/// 0.
inline void store_rows(const Matrix& out, int64_t first, int64_t exists, int64_t rows, int64_t columns,
                       const float* values, int64_t stride, const int64_t* order = nullptr) {
  const auto at = [&](int64_t i) { return (order ? order[first + i] : first + i) * out.row; };
  for (int64_t i = 0; i < exists; ++i) {
    if (out.dtype == Dtype::f32)
      std::memcpy(static_cast<float*>(out.data) + at(i), values + i * stride, static_cast<size_t>(columns) * 4);
    else
      store(out.dtype, out.data, at(i), 1, values + i * stride, columns);
  }
  const int64_t item = size_of(out.dtype);
  for (int64_t i = exists; i < rows; ++i)  // zero bits are 0 in every type
    std::memset(static_cast<char*>(out.data) + at(i) * item, 0, static_cast<size_t>(columns * item));
}

/// Sequences of a sample: one, or as many as the offsets say and what lies beyond the last.
inline int64_t sequences_of(const kernels::Attention& options) { return options.offsets ? options.offsets.numel() : 1; }

inline int64_t heads_of(const View& k, const kernels::Attention& options) {
  return k.size(0) * k.size(1) * sequences_of(options);
}

/// The head that a thread computes after `number`; after the last one, that.
inline int64_t next_head(int64_t number, const View& k, const kernels::Attention& options) {
  return std::min(number + 1, heads_of(k, options) - 1);
}

/// The queries that are computed where not all are, by rising position: each head finds its own side by side. Until
/// the calling thread asks for Workspace::call again.
struct Wanted {
  explicit Wanted(const kernels::Attention& options)
      : positions(options.rows.as<const int64_t>()), count(options.rows ? options.rows.numel() : 0) {
    if (!options.rows) return;
    order = scratch<int64_t>(count + 1, Workspace::call);  // never null
    std::iota(order, order + count, int64_t{0});
    std::stable_sort(order, order + count, [this](int64_t a, int64_t b) { return positions[a] < positions[b]; });
  }
  /// The first at `position` or beyond.
  const int64_t* from(int64_t position) const {
    return std::lower_bound(order, order + count, position,
                            [this](int64_t row, int64_t least) { return positions[row] < least; });
  }
  const int64_t* positions;  ///< by row
  int64_t count;
  int64_t* order = nullptr;  ///< rows by position; null: all queries are computed
};

struct Head {
  int64_t sample, head;
  int64_t begin = 0;                ///< position of the sequence in its sample
  int64_t all_queries, all_keys;    ///< of the sequence; queries: that are computed
  int64_t queries, keys;            ///< how many of each exist
  int64_t first_row, first_factor;  ///< row of lse and, without the site's, number of the mask's element of query 0
  const int64_t* order = nullptr;   ///< rows of the queries, where not all are computed
  const int64_t* positions;         ///< by row, then, of which begin_in_all is the sequence's first
  int64_t begin_in_all;
  int64_t factors_of_row;  ///< elements of the mask for a query
  int64_t block;           ///< queries of one block
  int64_t stride;  ///< of a block's rows of scores, one for each key; beyond the queries, so that rows do not lie a
                   ///< power of two apart
  int64_t room;    ///< for a block's scores
  bool causal;

  /// number = (sample * heads + head) * sequences + sequence
  Head(const View& q, const View& k, const kernels::Attention& options, const Wanted& wanted, int64_t number)
      : sample(number / sequences_of(options) / k.size(1)),
        head(number / sequences_of(options) % k.size(1)),
        all_queries(wanted.order ? k.size(2) : q.size(2)),
        all_keys(k.size(2)),
        factors_of_row(k.size(2)),
        causal(options.causal) {
    int64_t end = all_keys;
    const int64_t last = sequences_of(options) - 1, sequence = number % (last + 1);
    if (options.offsets) {
      const auto offset = [&](int64_t i) {
        return std::clamp<int64_t>(options.offsets.as<const int32_t>()[i * options.offsets.stride(0)], 0, all_keys);
      };
      begin = offset(sequence);
      if (sequence < last) end = std::max(begin, offset(sequence + 1));
      all_queries = all_keys = end - begin;
    }
    const bool beyond = options.offsets && sequence == last;
    queries = beyond ? 0 : all_queries;
    keys = beyond ? 0 : all_keys;
    first_row = (sample * q.size(1) + head) * q.size(2) + begin;
    first_factor = first_row * factors_of_row + begin;
    if (options.lengths) {
      const int64_t length = std::max(0, options.lengths.as<const int32_t>()[sample * options.lengths.stride(0)]);
      queries = std::min(queries, length);
      keys = std::min(keys, length);
    }
    if (keys == 0) queries = 0;
    if (wanted.order) {
      positions = wanted.positions;
      begin_in_all = sample * k.size(2) + begin;
      order = wanted.from(begin_in_all);
      queries = wanted.from(begin_in_all + queries) - order;
      all_queries = wanted.from(begin_in_all + all_keys) - order;
      first_row = head * wanted.count;
      first_factor = ((sample * k.size(1) + head) * factors_of_row + begin) * factors_of_row + begin;
    }
    constexpr int64_t most = 96;
    const int64_t blocks = std::max<int64_t>(1, (all_queries + most - 1) / most);
    block = round_up((all_queries + blocks - 1) / blocks, panel_columns);
    stride = block + vector_width;
    room = round_up(all_keys, panel_columns) * stride;
  }
  /// The row of lse, and in of_queries(), of query `query`, and where that stands in its sequence.
  int64_t row(int64_t query) const { return order ? order[query] : query; }
  int64_t position(int64_t query) const { return order ? positions[order[query]] - begin_in_all : query; }
  /// Keys that query `query` sees.
  int64_t seen_by(int64_t query) const { return causal ? std::min(keys, position(query) + 1) : keys; }
  Matrix of(const View& all) const { return head_of(all, sample, head, begin); }
  static int64_t row_bytes(const View& all) { return all.size(3) * size_of(all.dtype); }
  Matrix of_queries(const View& all) const { return order ? head_of(all, 0, head, 0) : of(all); }
};

/// Calls f<Tile>() with the tile that multiplies operands of type `dtype`.
template <class F>
void with_tile([[maybe_unused]] Dtype dtype, F f) {
#if CINTA_ISA_LEVEL == 2
  if (dtype == Dtype::bf16 && isa_level() >= isa_amx) return f.template operator()<AmxTile>();
  if (dtype == Dtype::bf16 && multiplies(dtype)) return f.template operator()<Bf16Tile>();
#endif
  f.template operator()<FloatTile>();
}

#include "cinta/backends/cpu/isa_end.h"
