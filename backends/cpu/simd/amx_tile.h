// The register tile by the instructions of AMX: products of bf16, sixteen words of the sum at once, of operands that
// lie as Bf16Tile's, the left one along rows.
#pragma once
#include "cinta/backends/cpu/simd/amx_sums.h"
#include "cinta/backends/cpu/simd/transpose.h"

#include "cinta/backends/cpu/isa_begin.h"

#if CINTA_ISA_LEVEL == 2
/// Only where isa_level() reaches isa_amx, on a thread that keeps a Use.
struct AmxTile : Bf16Tile {
  static constexpr int depth = 16;  ///< words of a row of a tile, and rows
  static constexpr int64_t words_at_once = depth, rows = int64_t{1} << 40;
  static constexpr Walk down = Walk::along_rows;
  using Use = AmxTiles<depth, depth, depth, depth, depth, depth, depth, depth>;

  /// As FloatTile::multiply, along rows, of any number of rows, and more up to a multiple of `depth`, as `words` is
  /// one.
  template <Walk walk>
  static void multiply(float* out, int64_t out_stride, const float* a, int64_t a_stride, const float* b,
                       int64_t b_stride, int64_t words, bool add, int64_t rows) {
    static_assert(walk == Walk::along_rows);
    for (int64_t i = 0; i < rows; i += 2 * depth)
      (rows - i > depth ? multiply_square<true> : multiply_square<false>)(out + i * out_stride, out_stride,
                                                                          a + i * a_stride, a_stride, b, b_stride,
                                                                          words, add);
  }

 private:
  /// 32 columns of 32 rows (`two`) or 16.
  template <bool two>
  [[gnu::target("amx-tile,amx-bf16"), gnu::noinline]] static void multiply_square(float* out, int64_t out_stride,
                                                                                  const float* a, int64_t a_stride,
                                                                                  const float* b, int64_t b_stride,
                                                                                  int64_t words, bool add) {
    finish_stores();
    begin_sums<two>(out, out_stride, add);
    for (int64_t w = 0; w < words; w += depth) {
      const float* row = b + w * b_stride;
      add_products<two, true, true>({a + w, a + depth * a_stride + w, bytes_of(a_stride)},
                                    {row, row + depth, bytes_of(b_stride)}, [] {});
    }
    store_sums<two>(out, out_stride);
  }

  static int64_t bytes_of(int64_t stride) { return stride * static_cast<int64_t>(sizeof(float)); }
};
#endif

#include "cinta/backends/cpu/isa_end.h"
