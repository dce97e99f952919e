// The inside of a matrix product: packing operands into panels, and the register tile that multiplies two panels.
// Goto, van de Geijn: "Anatomy of high-performance matrix multiplication" (2008).
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/simd/convert.h"

#include "cinta/backends/cpu/isa_begin.h"

#if CINTA_ISA_LEVEL == 2
inline constexpr int vector_bytes = 64, panel_rows = 12;
#elif CINTA_ISA_LEVEL == 1
inline constexpr int vector_bytes = 32, panel_rows = 6;
#else
inline constexpr int vector_bytes = 16, panel_rows = 6;
#endif
typedef float Vector __attribute__((vector_size(vector_bytes)));

/// The register tile: panel_rows x panel_columns sums fill the vector registers.
inline constexpr int vector_width = vector_bytes / sizeof(float), panel_columns = 2 * vector_width;
/// Steps of k that are packed together: a panel of b then stays in the first-level cache.
inline constexpr int64_t depth_block = 256;

inline int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Packs `strips` (at most `width`) strips side by side: out[step][strip], zeros beyond. Strip s, step k is element
/// first + s * strip_stride + k * step_stride of `m`; at most depth_block steps.
template <int width>
void pack_panel(float* out, const Matrix& m, int64_t first, int64_t strips, int64_t strip_stride, int64_t steps,
                int64_t step_stride) {
  if (strips < width) std::memset(out, 0, sizeof(float) * static_cast<size_t>(steps * width));
  const float* plain = static_cast<const float*>(m.data) + first;
  if (strip_stride == 1 && m.dtype == Dtype::f32 && strips == width) {
    for (int64_t k = 0; k < steps; ++k)
      for (int s = 0; s < width; ++s) out[k * width + s] = plain[k * step_stride + s];
  } else if (strip_stride == 1 && step_stride != 1) {
    for (int64_t k = 0; k < steps; ++k) load(out + k * width, m.dtype, m.data, first + k * step_stride, 1, strips);
  } else if (m.dtype == Dtype::f32 && strips == width) {
    for (int64_t k = 0; k < steps; ++k)
      for (int s = 0; s < width; ++s) out[k * width + s] = plain[k * step_stride + s * strip_stride];
  } else {
    float strip[depth_block];
    for (int64_t s = 0; s < strips; ++s) {
      load(strip, m.dtype, m.data, first + s * strip_stride, step_stride, steps);
      for (int64_t k = 0; k < steps; ++k) out[k * width + s] = strip[k];
    }
  }
}

/// out[panel_rows][panel_columns] = sum over the steps of a panel of a times a panel of b.
inline void multiply_panels(float* out, const float* a, const float* b, int64_t steps) {
  Vector left[panel_rows]{}, right[panel_rows]{};
  for (int64_t k = 0; k < steps; ++k, a += panel_rows, b += panel_columns) {
    const Vector b0 = *reinterpret_cast<const Vector*>(b), b1 = *reinterpret_cast<const Vector*>(b + vector_width);
#pragma GCC unroll 16
    for (int i = 0; i < panel_rows; ++i) {
      left[i] += a[i] * b0;
      right[i] += a[i] * b1;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < panel_rows; ++i) {
    *reinterpret_cast<Vector*>(out + i * panel_columns) = left[i];
    *reinterpret_cast<Vector*>(out + i * panel_columns + vector_width) = right[i];
  }
}

#include "cinta/backends/cpu/isa_end.h"
