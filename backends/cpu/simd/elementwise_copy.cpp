// Copies: bytes where the types are equal, in blocks where one side is transposed; through a computing type otherwise.
#include <algorithm>
#include <cstring>

#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/cpu/layout.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/map.h"
#include "cinta/backends/kernels/elementwise.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

/// y[i * y_stride + j] = x[i + j * x_stride] for i < rows, j < columns: by way of a small buffer, so that every cache
/// line is read and written whole.
template <class T>
void transpose(T* y, int64_t y_stride, const T* x, int64_t x_stride, int64_t rows, int64_t columns) {
  constexpr int64_t block = std::max<int64_t>(8, 64 / sizeof(T));
  T buffer[block][block];
  for (int64_t j0 = 0; j0 < columns; j0 += block) {
    for (int64_t i0 = 0; i0 < rows; i0 += block) {
      const int64_t m = std::min(block, rows - i0), n = std::min(block, columns - j0);
      for (int64_t j = 0; j < n; ++j)
        std::memcpy(buffer[j], x + i0 + (j0 + j) * x_stride, sizeof(T) * static_cast<size_t>(m));
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) y[(i0 + i) * y_stride + j0 + j] = buffer[j][i];
    }
  }
}

/// The dimension outside the rows of y along which x is contiguous; -1 when there is none.
int transposed_dimension(const Layout& layout) {
  if (layout.strides[0][layout.rank - 1] != 1) return -1;
  for (int dim = layout.rank - 2; dim >= 0; --dim)
    if (layout.strides[1][dim] == 1 && layout.sizes[dim] >= 8) return dim;
  return -1;
}

template <class T>
void copy_words(View y, View x) {
  const Layout layout{y, x};
  if (layout.count == 0) return;
  T* out = y.as<T>();
  const T* in = x.as<const T>();
  const int last = layout.rank - 1;
  const int64_t n = layout.row(), y_stride = layout.strides[0][last], x_stride = layout.strides[1][last];
  constexpr int64_t grain = 65536 / sizeof(T);
  const int turned = x_stride == 1 ? -1 : transposed_dimension(layout);
  if (turned >= 0) {
    // One matrix for each position of the other dimensions, cut into tiles that touch few memory pages.
    Layout outer = layout;
    outer.sizes[last] = outer.sizes[turned] = 1;
    constexpr int64_t tile = 128;
    const int64_t rows = layout.sizes[turned], down = (rows + tile - 1) / tile, across = (n + tile - 1) / tile;
    parallel_for(outer.sizes.numel() * down * across,
                 std::max<int64_t>(1, grain / (std::min(rows, tile) * std::min(n, tile))),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t job = begin; job < end; ++job) {
                     const int64_t i = job % down * tile, j = job / down % across * tile, matrix = job / down / across;
                     transpose(out + outer.offset(0, matrix) + i * layout.strides[0][turned] + j,
                               layout.strides[0][turned], in + outer.offset(1, matrix) + i + j * x_stride, x_stride,
                               std::min(tile, rows - i), std::min(tile, n - j));
                   }
                 });
    return;
  }
  parallel_for(layout.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end;) {
      const int64_t count = std::min(end - at, n - at % n);
      T* to = out + layout.offset(0, at);
      const T* from = in + layout.offset(1, at);
      if (x_stride == 1 && y_stride == 1)
        std::memcpy(to, from, sizeof(T) * static_cast<size_t>(count));
      else
        for (int64_t i = 0; i < count; ++i) to[i * y_stride] = from[i * x_stride];
      at += count;
    }
  });
}

template <class T>
void copy_loop(T* y, const T* const* in, int64_t count, const void*) {
  std::memcpy(y, in[0], sizeof(T) * static_cast<size_t>(count));
}

void copy_view(View y, View x) {
  if (y.dtype == x.dtype) {
    switch (size_of(y.dtype)) {
      case 1:
        return copy_words<uint8_t>(y, x);
      case 2:
        return copy_words<uint16_t>(y, x);
      case 4:
        return copy_words<uint32_t>(y, x);
      default:
        return copy_words<uint64_t>(y, x);
    }
  }
  with_common(y, x, [&]<class T>() { map<T>(y, {x}, copy_loop<T>, nullptr); });
}
const InstallSimd copy{kernels::copy, copy_view};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
