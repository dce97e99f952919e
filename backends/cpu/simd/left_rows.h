// Rows of a product's left operand whose sum runs along them, as the register tile reads them: where they lie, widened,
// or packed, with the words of each step side by side. Packed ones take fewer instructions to multiply, which counts
// where a busy other thread of the core leaves few of them (docs/rows.md, Packing).
#pragma once
#include <atomic>
#include <type_traits>
#include <vector>

#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/gemm_operand.h"

#include "cinta/backends/cpu/isa_begin.h"
#if CINTA_ISA_LEVEL > 0

/// panel_rows rows of words. By rows, `pitch` lies between them; packed, between steps.
struct Left {
  const float* data;
  int64_t pitch;
};

/// Whether rows can be packed for the tile.
template <class Tile>
inline constexpr bool packs_left = CINTA_ISA_LEVEL == 2 && Tile::steps_per_word == 1;

/// Words of a packed panel of k steps: the last store writes beyond what is read.
inline int64_t packed_left_words(int64_t k) { return round_up(k, vector_width) * panel_rows + vector_width; }

#if CINTA_ISA_LEVEL == 2
/// vector_width steps of panel_rows rows, `pitch` apart: the words of each step follow those of the step before.
inline void pack_steps(float* out, const float* in, int64_t pitch) {
#pragma GCC unroll 4
  for (int step = 0; step < vector_width; step += 4, in += 4) {
    __m512 rows[4];  // four steps of each of the rows i, 4 + i, 8 + i
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      rows[i] = _mm512_zextps128_ps512(_mm_loadu_ps(in + i * pitch));
      rows[i] = _mm512_maskz_insertf32x4(0xffff, rows[i], _mm_loadu_ps(in + (4 + i) * pitch), 1);
      rows[i] = _mm512_maskz_insertf32x4(0xffff, rows[i], _mm_loadu_ps(in + (8 + i) * pitch), 2);
    }
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half, out += 2 * panel_rows) {  // with the masks, as GCC 12 warns without
      const auto joined = [half](__m512 a, __m512 b) __attribute__((always_inline)) {
        return (__m512d)(half ? _mm512_maskz_unpackhi_ps(0xffff, a, b) : _mm512_maskz_unpacklo_ps(0xffff, a, b));
      };
      const __m512d even = joined(rows[0], rows[1]), odd = joined(rows[2], rows[3]);
      _mm512_storeu_ps(out, (__m512)_mm512_maskz_unpacklo_pd(0xff, even, odd));
      _mm512_storeu_ps(out + panel_rows, (__m512)_mm512_maskz_unpackhi_pd(0xff, even, odd));
    }
  }
}

/// A packed panel of the first k values of panel_rows rows, widened if they are narrower.
template <class Value>
void pack_left(float* out, const Value* in, int64_t pitch, int64_t k) {
  alignas(64) float square[panel_rows * vector_width];
  for (int64_t step = 0; step < k; step += vector_width) {
    float* to = out + step * panel_rows;
    if constexpr (std::is_same_v<Value, float>)
      if (step + vector_width <= k) {
        pack_steps(to, in + step, pitch);
        continue;
      }
    for (int64_t r = 0; r < panel_rows; ++r)
      *reinterpret_cast<Vector*>(square + r * vector_width) = load_first(in + r * pitch + step, k - step);
    pack_steps(to, square, vector_width);
  }
}
#endif

/// Rows packed once for the tiles of all stripes, block by block: by the tile that multiplies them with the first
/// stripe. One that comes before it is done does not wait, and packs for itself.
class SharedLeft {
 public:
  SharedLeft(int64_t rows, int64_t k, int64_t blocks)
      : words_((rows + panel_rows - 1) / panel_rows * packed_left_words(k) * static_cast<int64_t>(sizeof(float))),
        k_(k),
        are_whole_(static_cast<size_t>(blocks)) {}

  /// Where the panel that begins at row i lies.
  float* panel(int64_t i) const { return static_cast<float*>(words_.data()) + i / panel_rows * packed_left_words(k_); }
  LinesAhead lines(int64_t i) const { return {panel(i), 64, packed_left_words(k_) / vector_width}; }
  bool is_whole(int64_t block) const { return are_whole_[static_cast<size_t>(block)].load(std::memory_order_acquire); }
  void set_whole(int64_t block) { are_whole_[static_cast<size_t>(block)].store(true, std::memory_order_release); }

 private:
  WorkspaceBlock words_;
  int64_t k_;
  std::vector<std::atomic<bool>> are_whole_;
};
#endif

#include "cinta/backends/cpu/isa_end.h"
