// The matrix product that needs no library: b is packed once, then tiles of rows are computed on all threads.
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/gemm_kernel.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

/// A product and how it is cut.
struct Job {
  const Gemm& p;
  int64_t padded_n, tile_m, tile_n;
  float* packed_b;  ///< for each block of k: panels of panel_columns columns
  bool direct;      ///< sums can be kept in y itself

  /// The panel of columns j.. in the block of k that begins at k0.
  float* panel(int64_t k0, int64_t steps, int64_t j) const { return packed_b + k0 * padded_n + j * steps; }

  void pack_b(int64_t j) const {
    for (int64_t k = 0; k < p.k; k += depth_block) {
      const int64_t steps = std::min(depth_block, p.k - k), strips = std::min<int64_t>(panel_columns, p.n - j);
      pack_panel<panel_columns>(panel(k, steps, j), p.b, k * p.b.row + j * p.b.column, strips, p.b.column, steps,
                                p.b.row);
    }
  }

  /// c = alpha * sums + bias + beta * y at the first block of k, c += alpha * sums at later ones.
  void add(float* c, int64_t stride, const float* sums, int64_t i0, int64_t m, int64_t j0, int64_t n,
           bool first) const {
    for (int64_t i = 0; i < m; ++i, c += stride, sums += panel_columns) {
      if (!first) {
        for (int64_t j = 0; j < n; ++j) c[j] += p.alpha * sums[j];
        continue;
      }
      float old[panel_columns], shift[panel_columns]{};
      if (p.beta != 0) {
        load(old, p.y.dtype, p.y.data, (i0 + i) * p.y.row + j0 * p.y.column, p.y.column, n);
        for (int64_t j = 0; j < n; ++j) shift[j] = p.beta * old[j];
      }
      if (p.bias.data) {
        load(old, p.bias.dtype, p.bias.data, (i0 + i) * p.bias.row + j0 * p.bias.column, p.bias.column, n);
        for (int64_t j = 0; j < n; ++j) shift[j] += old[j];
      }
      for (int64_t j = 0; j < n; ++j) c[j] = p.alpha * sums[j] + shift[j];
    }
  }

  void tile(int64_t m0, int64_t n0) const {
    const int64_t m = std::min(tile_m, p.m - m0), n = std::min(tile_n, p.n - n0), packed = tile_m * depth_block;
    float* packed_a = scratch<float>(packed + (direct ? 0 : tile_m * tile_n), Workspace::tile);
    float* c = direct ? static_cast<float*>(p.y.at(m0, n0)) : packed_a + packed;
    const int64_t stride = direct ? p.y.row : tile_n;
    alignas(64) float sums[panel_rows * panel_columns];
    for (int64_t k = 0; k < p.k; k += depth_block) {
      const int64_t steps = std::min(depth_block, p.k - k);
      for (int64_t i = 0; i < m; i += panel_rows)
        pack_panel<panel_rows>(packed_a + i * steps, p.a, (m0 + i) * p.a.row + k * p.a.column,
                               std::min<int64_t>(panel_rows, m - i), p.a.row, steps, p.a.column);
      for (int64_t j = 0; j < n; j += panel_columns)
        for (int64_t i = 0; i < m; i += panel_rows) {
          multiply_panels(sums, packed_a + i * steps, panel(k, steps, n0 + j), steps);
          add(c + i * stride + j, stride, sums, m0 + i, std::min<int64_t>(panel_rows, m - i), n0 + j,
              std::min<int64_t>(panel_columns, n - j), k == 0);
        }
    }
    if (direct) return;
    for (int64_t i = 0; i < m; ++i)
      store(p.y.dtype, p.y.data, (m0 + i) * p.y.row + n0 * p.y.column, p.y.column, c + i * stride, n);
  }
};

void run(const Gemm& p) {
  Job job{p, round_up(p.n, panel_columns), 0, 0, nullptr, p.y.dtype == Dtype::f32 && p.y.column == 1};
  // Some 16 tiles along m, so that many threads find work, but none so small that packing shows.
  job.tile_m = std::clamp<int64_t>(round_up((p.m + 15) / 16, panel_rows), 4 * panel_rows, round_up(96, panel_rows));
  job.tile_n = p.m > 2 * job.tile_m ? 1024 : 128;
  job.packed_b = scratch<float>(p.k * job.padded_n, Workspace::call);
  parallel_for(job.padded_n / panel_columns, 4, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) job.pack_b(panel * panel_columns);
  });
  const int64_t down = (p.m + job.tile_m - 1) / job.tile_m, across = (p.n + job.tile_n - 1) / job.tile_n;
  parallel_for(down * across, 1,
               [&](int64_t tile, int64_t) { job.tile(tile % down * job.tile_m, tile / down * job.tile_n); });
}

const InstallGemm here{CINTA_ISA_LEVEL, run};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
