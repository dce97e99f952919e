// The register tile by the instructions of AMX: products of bf16, sixteen words of the sum at once, with the operands
// that Bf16Tile reads.
#pragma once
#include <algorithm>
#include <cstring>

#include "cinta/backends/cpu/simd/amx.h"
#include "cinta/backends/cpu/simd/transpose.h"

#include "cinta/backends/cpu/isa_begin.h"

#if CINTA_ISA_LEVEL == 2
/// Only where isa_level() reaches isa_amx, on a thread that keeps a Use.
struct AmxTile : Bf16Tile {
  static constexpr int depth = 16;  ///< words of a row of a tile, and rows of a tile of b
  /// 0 and 1 hold sums, 2 words of a, 3 and 4 words of b.
  using Use = AmxTiles<panel_rows, panel_rows, panel_rows, depth, depth>;

  /// As FloatTile::multiply, always of all rows, which take no longer; along columns, four words beyond the rows of a
  /// are read.
  template <Walk walk>
  [[gnu::target("amx-tile,amx-bf16"), gnu::noinline]] static void multiply(float* out, int64_t out_stride,
                                                                           const float* a, int64_t a_stride,
                                                                           const float* b, int64_t b_stride,
                                                                           int64_t words, float scale, bool add,
                                                                           int64_t /*rows*/) {
    alignas(64) float sums[panel_rows * panel_columns], left[depth * depth];
    _tile_zero(0);
    _tile_zero(1);
    finish_stores();
    int64_t w = 0;
    for (; w + depth <= words; w += depth) {
      if constexpr (walk == Walk::along_rows) {
        _tile_loadd(2, a + w, bytes_of(a_stride));
      } else {
        transpose_block(left, depth, a + w * a_stride, a_stride);
        finish_stores();
        _tile_loadd(2, left, bytes_of(depth));
      }
      _tile_loadd(3, b + w * b_stride, bytes_of(b_stride));
      _tile_dpbf16ps(0, 2, 3);
      _tile_loadd(4, b + w * b_stride + depth, bytes_of(b_stride));
      _tile_dpbf16ps(1, 2, 4);
    }
    if (w < words) {
      alignas(64) float rest[depth * depth]{}, right[depth * panel_columns]{};
      const int64_t count = words - w;
      for (int64_t i = 0; i < (walk == Walk::along_rows ? panel_rows : count); ++i)
        if constexpr (walk == Walk::along_rows)
          std::copy_n(a + i * a_stride + w, count, rest + i * depth);
        else
          std::copy_n(a + (w + i) * a_stride, depth, rest + i * depth);
      if constexpr (walk == Walk::along_columns) transpose_block(left, depth, rest, depth);
      for (int64_t i = 0; i < count; ++i) std::copy_n(b + (w + i) * b_stride, panel_columns, right + i * panel_columns);
      finish_stores();
      _tile_loadd(2, walk == Walk::along_rows ? rest : left, bytes_of(depth));
      _tile_loadd(3, right, bytes_of(panel_columns));
      _tile_dpbf16ps(0, 2, 3);
      _tile_loadd(4, right + depth, bytes_of(panel_columns));
      _tile_dpbf16ps(1, 2, 4);
    }
    _tile_stored(0, sums, bytes_of(panel_columns));
    _tile_stored(1, sums + depth, bytes_of(panel_columns));
    Vector low[panel_rows], high[panel_rows];
#pragma GCC unroll 16
    for (int i = 0; i < panel_rows; ++i) {
      low[i] = *reinterpret_cast<const Vector*>(sums + i * panel_columns);
      high[i] = *reinterpret_cast<const Vector*>(sums + i * panel_columns + vector_width);
    }
    PutTile{out, out_stride, scale, add}(low, high);
  }

 private:
  static int64_t bytes_of(int64_t stride) { return stride * static_cast<int64_t>(sizeof(float)); }
};
#endif

#include "cinta/backends/cpu/isa_end.h"
