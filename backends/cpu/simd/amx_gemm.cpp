// The product of bf16 by the tiles of AMX. Both operands are packed into tiles: the smaller one once for all threads,
// the other by stripes, each by the thread that multiplies it.
#include <algorithm>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/amx.h"
#include "cinta/backends/cpu/simd/amx_operand.h"
#include "cinta/backends/cpu/simd/amx_results.h"

#include "cinta/backends/cpu/isa_begin.h"
#if CINTA_ISA_LEVEL == 2
namespace {

constexpr int64_t side = AmxOperand::side, square = AmxOperand::square, panel = AmxOperand::panel,
                  step = AmxOperand::step;

/// sums[32,32] = a panel of a times a panel of b, over so many tiles of each; beside it results are written.
[[gnu::target("amx-tile,amx-bf16,avx512bf16"), gnu::noinline]] void multiply_panels(float* sums, const float* a,
                                                                                    const float* b, int64_t tiles,
                                                                                    AmxResults& results) {
  constexpr int64_t row = 64, line = panel * 4;
  const int64_t rows = (panel + tiles - 1) / tiles;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  finish_stores();
  for (int64_t t = 0; t < tiles; ++t, a += 2 * square, b += 2 * square) {
    _tile_loadd(6, b, row);
    _tile_loadd(4, a, row);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + square, row);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + square, row);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    results.advance(rows);
  }
  _tile_stored(0, sums, line);
  _tile_stored(1, sums + side, line);
  _tile_stored(2, sums + side * panel, line);
  _tile_stored(3, sums + side * panel + side, line);
  finish_stores();
}

constexpr int64_t most_panels = 4;  ///< of a stripe

struct Job {
  const Gemm& p;
  AmxOperand a, b;
  bool rows_shared;  ///< a is packed once, b by stripes; or the other way round
  int64_t stripe;    ///< strips of the other
  float* packed;     ///< the shared operand

  const AmxOperand& shared() const { return rows_shared ? a : b; }
  const AmxOperand& other() const { return rows_shared ? b : a; }

  void multiply_stripe(int64_t begin) const {
    const AmxTiles<side, side, side, side, side, side, side, side> tiles;
    const int64_t panels = (std::min(stripe, other().strips - begin) + panel - 1) / panel, of_panel = a.panel_words(),
                  count = shared().panels();
    float* own = scratch<float>(panels * of_panel, Workspace::tile);
    other().pack_panels(own, begin / panel, panels);
    alignas(64) float sums[2][panel * panel];
    AmxResults results(p);
    for (int64_t s = 0; s < count; ++s)
      for (int64_t o = 0; o < panels; ++o) {
        const int64_t of_shared = s * panel, of_other = begin + o * panel;
        const float *from_shared = packed + s * of_panel, *from_own = own + o * of_panel;
        float* made = sums[(s * panels + o) % 2];
        results.expect(rows_shared ? of_shared : of_other, rows_shared ? of_other : of_shared);
        multiply_panels(made, rows_shared ? from_shared : from_own, rows_shared ? from_own : from_shared,
                        of_panel / square / 2, results);
        results.begin(made);
      }
    results.write(panel);
  }
};

bool run(const Gemm& p) {
  const auto plain = [](const Matrix& m) { return m.dtype == Dtype::bf16 && (m.row == 1 || m.column == 1); };
  if (!plain(p.a) || !plain(p.b)) return false;
  const AmxOperand a{static_cast<const uint16_t*>(p.a.data), p.m, p.a.row, p.k, p.a.column, false},
      b{static_cast<const uint16_t*>(p.b.data), p.n, p.b.column, p.k, p.b.row, true};
  Job job{p, a, b, p.m < p.n, 0, nullptr};
  job.stripe = std::clamp(round_up((job.other().strips + 7) / 8, panel), panel, most_panels * panel);
  job.packed = scratch<float>(job.shared().panels() * a.panel_words(), Workspace::call);
  parallel_for(job.shared().panels(), std::max<int64_t>(1, 4096 / p.k), [&](int64_t begin, int64_t end) {
    job.shared().pack_panels(job.packed + begin * a.panel_words(), begin, end - begin);
  });
  const int64_t strips = job.other().strips;
  parallel_for((strips + job.stripe - 1) / job.stripe, 1,
               [&](int64_t number, int64_t) { job.multiply_stripe(number * job.stripe); });
  return true;
}

const InstallSpecialGemm here{isa_amx, run};

}  // namespace
#endif
#include "cinta/backends/cpu/isa_end.h"
