// The matrix product that needs no library: b is packed once, then tiles of rows are computed on all threads.
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/gemm_kernel.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

/// A product and how it is cut.
struct Job {
  const Gemm& p;
  PackedRight b;
  int64_t tile_m, tile_n;
  bool direct;  ///< sums can be kept in y itself
  bool plain;   ///< the result is the sums, nothing else

  /// c = alpha * sums + bias + beta * y, for one row of a register tile at the first block of k.
  void begin_row(float* c, const float* sums, int64_t i, int64_t j0, int64_t n) const {
    float old[panel_columns], shift[panel_columns]{};
    if (p.beta != 0) {
      load(old, p.y.dtype, p.y.data, i * p.y.row + j0 * p.y.column, p.y.column, n);
      for (int64_t j = 0; j < n; ++j) shift[j] = p.beta * old[j];
    }
    if (p.bias.data) {
      load(old, p.bias.dtype, p.bias.data, i * p.bias.row + j0 * p.bias.column, p.bias.column, n);
      for (int64_t j = 0; j < n; ++j) shift[j] += old[j];
    }
    for (int64_t j = 0; j < n; ++j) c[j] = p.alpha * sums[j] + shift[j];
  }

  /// c = or += alpha * sums, for whole rows of a register tile.
  void add_tile(float* c, int64_t stride, int64_t rows, const float* sums, bool first) const {
    const float alpha = p.alpha;
    for (int64_t r = 0; r < rows; ++r, c += stride, sums += panel_columns)
      if (first)
        for (int l = 0; l < panel_columns; ++l) c[l] = sums[l];
      else
        for (int l = 0; l < panel_columns; ++l) c[l] += alpha * sums[l];
  }

  void tile(int64_t m0, int64_t n0) const {
    const int64_t m = std::min(tile_m, p.m - m0), n = std::min(tile_n, p.n - n0), packed = tile_m * depth_block;
    float* packed_a = scratch<float>(packed + (direct ? 0 : tile_m * tile_n), Workspace::tile);
    float* c = direct ? static_cast<float*>(p.y.at(m0, n0)) : packed_a + packed;
    const int64_t stride = direct ? p.y.row : tile_n;
    multiply_block(p.a, m0, m, b, n0, n, p.k, packed_a,
                   [&](int64_t i, int64_t rows, int64_t j, int64_t columns, const float* sums, bool first) {
                     float* out = c + i * stride + j;
                     if (columns == panel_columns && (plain || !first)) return add_tile(out, stride, rows, sums, first);
                     for (int64_t r = 0; r < rows; ++r, out += stride, sums += panel_columns)
                       if (first)
                         begin_row(out, sums, m0 + i + r, n0 + j, columns);
                       else
                         for (int64_t l = 0; l < columns; ++l) out[l] += p.alpha * sums[l];
                   });
    if (direct) return;
    for (int64_t i = 0; i < m; ++i)
      store(p.y.dtype, p.y.data, (m0 + i) * p.y.row + n0 * p.y.column, p.y.column, c + i * stride, n);
  }
};

/// A product whose packed right operand stays in the caches.
void run_part(const Gemm& p) {
  Job job{p, {scratch<float>(PackedRight::size(p.k, p.n), Workspace::call), p.k, p.n}, 0, 0, false, false};
  job.direct = p.y.dtype == Dtype::f32 && p.y.column == 1;
  job.plain = p.alpha == 1 && p.beta == 0 && !p.bias.data;
  // Tiles so many that all threads find work, and so large that packing a and reading b again do not show.
  job.tile_m = std::clamp<int64_t>(round_up((p.m + 7) / 8, panel_rows), 4 * panel_rows,
                                   round_up(p.m < 1536 ? 96 : 144, panel_rows));
  job.tile_n = p.m > 12 * job.tile_m ? 1024 : p.m > 2 * job.tile_m ? 256 : 128;
  parallel_for((p.n + panel_columns - 1) / panel_columns, 4, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) job.b.pack_columns(p.b, panel * panel_columns);
  });
  const int64_t down = (p.m + job.tile_m - 1) / job.tile_m, across = (p.n + job.tile_n - 1) / job.tile_n;
  parallel_for(down * across, 1,
               [&](int64_t tile, int64_t) { job.tile(tile % down * job.tile_m, tile / down * job.tile_n); });
}

void run(const Gemm& p) {
  constexpr int64_t most_packed = 1 << 19, most_depth = 4 * depth_block;
  // A narrow y cannot hold the sums of a part of k.
  const int64_t depth = p.y.dtype == Dtype::f32 ? std::min(p.k, most_depth) : p.k;
  const int64_t width = std::min(p.n, std::max<int64_t>(1024, round_up(most_packed / depth, panel_columns)));
  for (int64_t n0 = 0; n0 < p.n; n0 += width)
    for (int64_t k0 = 0; k0 < p.k; k0 += depth) {
      Gemm part = p;
      part.n = std::min(width, p.n - n0);
      part.k = std::min(depth, p.k - k0);
      part.y.data = p.y.at(0, n0);
      part.a.data = p.a.at(0, k0);
      part.b.data = p.b.at(k0, n0);
      if (p.bias.data) part.bias.data = p.bias.at(0, n0);
      if (k0 > 0) {
        part.beta = 1;
        part.bias.data = nullptr;
      }
      run_part(part);
    }
}

const InstallGemm here{CINTA_ISA_LEVEL, run};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
