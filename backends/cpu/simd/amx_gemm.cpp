// The product of bf16 by the tiles of AMX. Both operands are packed into tiles: the smaller one once for all threads,
// the other by stripes, each by the thread that multiplies it.
#include <algorithm>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/amx.h"
#include "cinta/backends/cpu/simd/amx_operand.h"
#include "cinta/backends/cpu/simd/convert.h"

#include "cinta/backends/cpu/isa_begin.h"
#if CINTA_ISA_LEVEL == 2
namespace {

constexpr int64_t side = AmxOperand::side, square = AmxOperand::square, panel = AmxOperand::panel,
                  step = AmxOperand::step;

/// sums[32,32] = a panel of a times a panel of b, over so many tiles of each.
[[gnu::target("amx-tile,amx-bf16"), gnu::noinline]] void multiply_panels(float* sums, int64_t stride, const float* a,
                                                                         const float* b, int64_t tiles, bool add) {
  constexpr int64_t row = 64;
  const int64_t line = stride * 4;
  float* lower = sums + side * stride;
  if (add) {
    _tile_loadd(0, sums, line);
    _tile_loadd(1, sums + side, line);
    _tile_loadd(2, lower, line);
    _tile_loadd(3, lower + side, line);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
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
  }
  _tile_stored(0, sums, line);
  _tile_stored(1, sums + side, line);
  _tile_stored(2, lower, line);
  _tile_stored(3, lower + side, line);
}

/// Terms of the sum after which another pair of panels is multiplied, so that the first-level cache holds both.
int64_t block_of(int64_t k) {
  const int64_t blocks = (k + 319) / 320;
  return round_up((k + blocks - 1) / blocks, step);
}

constexpr int64_t most_panels = 4;  ///< of a stripe

struct Job {
  const Gemm& p;
  AmxOperand a, b;
  bool rows_shared;  ///< a is packed once, b by stripes; or the other way round
  int64_t stripe;    ///< strips of the other
  float* packed;     ///< the shared operand
  bool plain;        ///< y is the sums, nothing else

  const AmxOperand& shared() const { return rows_shared ? a : b; }
  const AmxOperand& other() const { return rows_shared ? b : a; }

  /// y = alpha * sums + bias + beta * y, for a pair of panels.
  [[gnu::target("avx512bf16")]] void finish(int64_t i, int64_t j, const float* sums) const {
    const int64_t rows = std::min(panel, p.m - i), columns = std::min(panel, p.n - j);
    const auto exists = static_cast<__mmask32>((uint64_t{1} << columns) - 1);
    const float alpha = p.alpha, beta = p.beta;
    alignas(64) float changed[panel], bias[panel]{}, old[panel]{};
    for (int64_t r = 0; r < rows; ++r, sums += panel) {
      const int64_t first = (i + r) * p.y.row + j * p.y.column;
      if (p.bias.data && (r == 0 || p.bias.row != 0))
        load(bias, p.bias.dtype, p.bias.data, (i + r) * p.bias.row + j * p.bias.column, p.bias.column, columns);
      if (beta != 0) load(old, p.y.dtype, p.y.data, first, p.y.column, columns);
      if (!plain)
        for (int64_t c = 0; c < panel; ++c) changed[c] = alpha * sums[c] + bias[c] + beta * old[c];
      const float* line = plain ? sums : changed;
      if (p.y.dtype == Dtype::bf16 && p.y.column == 1)
        _mm512_mask_storeu_epi16(static_cast<bf16*>(p.y.data) + first, exists,
                                 (__m512i)_mm512_cvtne2ps_pbh(_mm512_load_ps(line + side), _mm512_load_ps(line)));
      else
        store(p.y.dtype, p.y.data, first, p.y.column, line, columns);
    }
  }

  void multiply_stripe(int64_t begin) const {
    const AmxTiles<side, side, side, side, side, side, side, side> tiles;
    const int64_t panels = (std::min(stripe, other().strips - begin) + panel - 1) / panel, of_panel = a.panel_words(),
                  count = shared().panels();
    const int64_t block = block_of(p.k);
    // Over more blocks of terms the sums stay in the first cache instead, for a row of panels.
    const bool in_place = plain && p.k <= block && p.y.dtype == Dtype::f32 && p.y.column == 1;
    float* own = scratch<float>(panels * of_panel, Workspace::tile);
    other().pack_panels(own, begin / panel, panels);
    alignas(64) float room[most_panels * panel * panel];
    for (int64_t s = 0; s < count; ++s)
      for (int64_t k0 = 0; k0 < p.k; k0 += block)
        for (int64_t o = 0; o < panels; ++o) {
          const int64_t of_shared = s * panel, of_other = begin + o * panel, i = rows_shared ? of_shared : of_other,
                        j = rows_shared ? of_other : of_shared;
          const float *from_shared = packed + s * of_panel + k0 * side, *from_own = own + o * of_panel + k0 * side;
          const bool direct = in_place && i + panel <= p.m && j + panel <= p.n;
          float* sums = direct ? static_cast<float*>(p.y.at(i, j)) : room + o * panel * panel;
          multiply_panels(sums, direct ? p.y.row : panel, rows_shared ? from_shared : from_own,
                          rows_shared ? from_own : from_shared, (std::min(block, p.k - k0) + step - 1) / step, k0 > 0);
          if (!direct && k0 + block >= p.k) finish(i, j, sums);
        }
  }
};

bool run(const Gemm& p) {
  const auto plain = [](const Matrix& m) { return m.dtype == Dtype::bf16 && (m.row == 1 || m.column == 1); };
  if (!plain(p.a) || !plain(p.b)) return false;
  const AmxOperand a{static_cast<const uint16_t*>(p.a.data), p.m, p.a.row, p.k, p.a.column, false},
      b{static_cast<const uint16_t*>(p.b.data), p.n, p.b.column, p.k, p.b.row, true};
  Job job{p, a, b, p.m < p.n, 0, nullptr, p.alpha == 1 && p.beta == 0 && !p.bias.data};
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
