// The inside of a matrix product: packing operands into panels, and multiplying them tile by tile.
// Goto, van de Geijn: "Anatomy of high-performance matrix multiplication" (2008).
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/simd/convert.h"
#include "cinta/backends/cpu/simd/gemm_tile.h"

#include "cinta/backends/cpu/isa_begin.h"

/// Steps of k that are packed together: a panel of b then stays in the first-level cache.
inline constexpr int64_t depth_block = 256;

/// Four strips side by side: out[step * width + s] = in[s * strip_stride + step], for a multiple of four steps.
template <int width>
void interleave_four(float* out, const float* in, int64_t strip_stride, int64_t steps) {
  typedef float Four __attribute__((vector_size(16), aligned(4)));
  typedef int32_t Order __attribute__((vector_size(16)));
  for (int64_t k = 0; k < steps; k += 4) {
    const auto strip = [&](int64_t s) { return *reinterpret_cast<const Four*>(in + s * strip_stride + k); };
    const Four s0 = strip(0), s1 = strip(1), s2 = strip(2), s3 = strip(3);
    const Order low{0, 4, 1, 5}, high{2, 6, 3, 7}, front{0, 1, 4, 5}, back{2, 3, 6, 7};
    const Four low01 = __builtin_shuffle(s0, s1, low), low23 = __builtin_shuffle(s2, s3, low);
    const Four high01 = __builtin_shuffle(s0, s1, high), high23 = __builtin_shuffle(s2, s3, high);
    const auto step = [&](int64_t i) -> Four& { return *reinterpret_cast<Four*>(out + (k + i) * width); };
    step(0) = __builtin_shuffle(low01, low23, front);
    step(1) = __builtin_shuffle(low01, low23, back);
    step(2) = __builtin_shuffle(high01, high23, front);
    step(3) = __builtin_shuffle(high01, high23, back);
  }
}

/// Packs `strips` (at most `width`) strips side by side: out[step][strip], zeros beyond. Strip s, step k is element
/// first + s * strip_stride + k * step_stride of `m`; at most depth_block steps.
template <int width>
void pack_panel(float* out, const Matrix& m, int64_t first, int64_t strips, int64_t strip_stride, int64_t steps,
                int64_t step_stride) {
  const float* plain = static_cast<const float*>(m.data) + first;
  if (strips == width && m.dtype == Dtype::f32) {
    if (strip_stride == 1) {
      for (int64_t k = 0; k < steps; ++k)
        for (int s = 0; s < width; ++s) out[k * width + s] = plain[k * step_stride + s];
      return;
    }
    constexpr int whole = width / 4 * 4;
    const int64_t fours = step_stride == 1 ? steps / 4 * 4 : 0;
    for (int s = 0; s < whole; s += 4) interleave_four<width>(out + s, plain + s * strip_stride, strip_stride, fours);
    for (int64_t k = 0; k < steps; ++k)
      for (int s = k < fours ? whole : 0; s < width; ++s)
        out[k * width + s] = plain[k * step_stride + s * strip_stride];
    return;
  }
  if (strips < width) std::memset(out, 0, sizeof(float) * static_cast<size_t>(steps * width));
  if (strip_stride == 1 && step_stride != 1) {
    for (int64_t k = 0; k < steps; ++k) load(out + k * width, m.dtype, m.data, first + k * step_stride, 1, strips);
    return;
  }
  float strip[depth_block];
  for (int64_t s = 0; s < strips; ++s) {
    load(strip, m.dtype, m.data, first + s * strip_stride, step_stride, steps);
    for (int64_t k = 0; k < steps; ++k) out[k * width + s] = strip[k];
  }
}

/// A right operand [k,n] packed for multiply_block: for each block of k, panels of panel_columns columns.
struct PackedRight {
  float* data;
  int64_t k, n;

  static int64_t size(int64_t k, int64_t n) { return k * round_up(n, panel_columns); }
  float* panel(int64_t k0, int64_t j) const {
    return data + k0 * round_up(n, panel_columns) + j * std::min(depth_block, k - k0);
  }
  /// Packs the panel of columns j.. of `b`.
  void pack_columns(const Matrix& b, int64_t j) const {
    for (int64_t k0 = 0; k0 < k; k0 += depth_block) {
      const int64_t steps = std::min(depth_block, k - k0);
      pack_panel<panel_columns>(panel(k0, j), b, k0 * b.row + j * b.column, std::min<int64_t>(panel_columns, n - j),
                                b.column, steps, b.row);
    }
  }
};

/// The product of rows i0 .. i0+m of `a` and columns n0 .. n0+n of `b` over the first k of its rows. Calls
/// add(i, rows, j, columns, sums, first) for every register tile of every block of k, where i and j count from i0 and
/// n0. packed_a has room for round_up(m, panel_rows) * depth_block values.
template <class Add>
void multiply_block(const Matrix& a, int64_t i0, int64_t m, const PackedRight& b, int64_t n0, int64_t n, int64_t k,
                    float* packed_a, Add add) {
  alignas(64) float sums[panel_rows * panel_columns];
  for (int64_t k0 = 0; k0 < k; k0 += depth_block) {
    const int64_t steps = std::min(depth_block, k - k0);
    for (int64_t i = 0; i < m; i += panel_rows)
      pack_panel<panel_rows>(packed_a + i * steps, a, (i0 + i) * a.row + k0 * a.column,
                             std::min<int64_t>(panel_rows, m - i), a.row, steps, a.column);
    for (int64_t j = 0; j < n; j += panel_columns)
      for (int64_t i = 0; i < m; i += panel_rows) {
        FloatTile::multiply<Walk::along_columns>(sums, panel_columns, packed_a + i * steps, panel_rows,
                                                 b.panel(k0, n0 + j), panel_columns, steps, false);
        add(i, std::min<int64_t>(panel_rows, m - i), j, std::min<int64_t>(panel_columns, n - j), sums, k0 == 0);
      }
  }
}

#include "cinta/backends/cpu/isa_end.h"
