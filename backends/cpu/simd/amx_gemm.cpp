// The product of bf16 by the tiles of AMX. Both operands are packed into tiles: one of them, mostly the smaller, by
// every thread for itself, or, where threads are many or it is large, once for all; the other by stripes, each by the
// thread that multiplies it.
#include <algorithm>
#include <atomic>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/amx.h"
#include "cinta/backends/cpu/simd/amx_operand.h"
#include "cinta/backends/cpu/simd/amx_results.h"
#include "cinta/backends/threads.h"

#include "cinta/backends/cpu/isa_begin.h"
#if CINTA_ISA_LEVEL == 2
namespace {

constexpr int64_t side = AmxOperand::side, square = AmxOperand::square, panel = AmxOperand::panel,
                  step = AmxOperand::step;

/// Rows of an operand that are packed next, fetched into the second cache over so many steps, as many lines in each.
class StripeAhead {
 public:
  StripeAhead() = default;
  StripeAhead(const AmxOperand& operand, int64_t first, int64_t count, int64_t steps)
      : row_(reinterpret_cast<const char*>(operand.data + first * operand.strip_stride)),
        stride_(operand.strip_stride * item),
        bytes_(operand.k * item),
        rows_(std::min(count, operand.strips - first)),
        lines_((rows_ * ((bytes_ + 63) / 64) + steps - 1) / steps) {}

  [[gnu::always_inline]] void advance() {
    for (int64_t line = 0; line < lines_ && rows_ > 0; ++line) {
      __builtin_prefetch(row_ + byte_, 0, 2);
      if ((byte_ += 64) < bytes_) continue;
      byte_ = 0;
      if (--rows_ > 0) row_ += stride_;
    }
  }

 private:
  static constexpr int64_t item = sizeof(uint16_t);
  const char* row_ = nullptr;
  int64_t stride_ = 0, bytes_ = 0, rows_ = 0, lines_ = 0, byte_ = 0;
};

/// sums[32,32] = a panel of a times a panel of b, over so many tiles of each; beside it results are written. Of the
/// last panel of a, where it has 16 rows or fewer, only its first tiles are multiplied (not `two`).
template <bool two>
[[gnu::target("amx-tile,amx-bf16,avx512bf16"), gnu::noinline]] void multiply_panels(float* sums, const float* a,
                                                                                    const float* b, int64_t tiles,
                                                                                    AmxResults& results,
                                                                                    StripeAhead& ahead) {
  constexpr int64_t row = 64, line = panel * 4;
  const int64_t rows = (panel + tiles - 1) / tiles;
  _tile_zero(0);
  _tile_zero(1);
  if (two) {
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
    if (two) {
      _tile_loadd(5, a + square, row);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    results.advance(rows);
    ahead.advance();
  }
  _tile_stored(0, sums, line);
  _tile_stored(1, sums + side, line);
  if (two) {
    _tile_stored(2, sums + side * panel, line);
    _tile_stored(3, sums + side * panel + side, line);
  }
  finish_stores();
}

constexpr int64_t most_panels = 4;  ///< of a stripe
/// Of a stripe where each thread has a product of its own: so many panels, for longer pieces of each row of memory, if
/// they are no more than so many words.
constexpr int64_t most_panels_alone = 8, most_words_alone = 1 << 17;

/// The next stripe is fetched while this one is multiplied if its rows lie along the sum, if it is no larger than this,
/// and if one thread has all stripes, or each at least so many, so that most are followed by one of the same thread. Of
/// the time, on an Emerald Rapids, two threads, cold operands: the logits [160,768] x [30522,768]^T 0.80 to 0.90,
/// [169,256] x [30522,256]^T 0.84 to 0.87, layers 0.93 to 1.00, but in stripes of 576 KiB 1.03. Where the sum runs down
/// the rows, gradients took 1.00 to 1.07.
constexpr int64_t most_fetched = 1 << 18, least_stripes_to_fetch = 4;  ///< values; of each thread

/// Threads, and values of an operand, up to which each packs all of it: what another one has packed comes from its
/// cache, line by line, and not before all have packed. Two threads: 0.92 of the time (products of BERT-mini's step on
/// an Emerald Rapids; of some MB 0.98).
constexpr int most_packers = 4;
constexpr int64_t most_packed_by_each = 4 << 20;
std::atomic<int64_t> jobs{0};
thread_local int64_t packed_for = 0;  ///< the job whose operand this thread has packed

struct Job {
  const Gemm& p;
  AmxOperand a, b;
  bool rows_shared;        ///< a is packed as a whole, b by stripes; or the other way round
  int64_t stripe = panel;  ///< strips of the other
  bool fetches = false;    ///< the next stripe, while one is multiplied
  const int64_t number = ++jobs;
  const float* packed_once = nullptr;  ///< the whole operand, unless every thread packs it

  const AmxOperand& shared() const { return rows_shared ? a : b; }
  const AmxOperand& other() const { return rows_shared ? b : a; }

  void multiply_stripe(int64_t begin) const {
    const AmxTiles<side, side, side, side, side, side, side, side> tiles;
    const int64_t panels = (std::min(stripe, other().strips - begin) + panel - 1) / panel, of_panel = a.panel_words(),
                  count = shared().panels();
    // As much for every stripe, so that the whole operand stays where the thread's first one has put it.
    const int64_t room = stripe / panel * of_panel;
    float* own = scratch<float>(room + (packed_once ? 0 : count * of_panel), Workspace::tile);
    if (!packed_once && packed_for != number) {
      shared().pack_panels(own + room, 0, count);
      packed_for = number;
    }
    const float* packed = packed_once ? packed_once : own + room;
    other().pack_panels(own, begin / panel, panels);
    alignas(64) float sums[2][panel * panel];
    const int64_t steps = of_panel / square / 2, next = begin + stripe;
    StripeAhead ahead;
    if (fetches && next < other().strips) ahead = StripeAhead(other(), next, stripe, count * panels * steps);
    AmxResults results(p);
    for (int64_t s = 0; s < count; ++s)
      for (int64_t o = 0; o < panels; ++o) {
        const int64_t of_shared = s * panel, of_other = begin + o * panel;
        const float *from_shared = packed + s * of_panel, *from_own = own + o * of_panel;
        float* made = sums[(s * panels + o) % 2];
        const int64_t i = rows_shared ? of_shared : of_other, j = rows_shared ? of_other : of_shared;
        results.expect(i, j);
        (p.m - i > side ? multiply_panels<true> : multiply_panels<false>)(made, rows_shared ? from_shared : from_own,
                                                                          rows_shared ? from_own : from_shared, steps,
                                                                          results, ahead);
        results.begin(made);
      }
    results.write(panel);
  }
};

/// True iff a's rows are multiplied a panel at a time, where b fits the second cache: up to some 500 terms the panel
/// stays in the first one, where it was packed, and whole rows of results are written one after another. Of the time,
/// on an Emerald Rapids, two threads, cold operands, results in bf16: [1040,256] x [1024,256]^T 0.79 to 0.90, x
/// [256,256] 0.90 to 0.93, [2048,256] x [256,1024] 0.84 to 0.90, [1040,1024] x [256,1024]^T 0.93 to 1.00, [1024,768] x
/// [768,768] 0.88 to 0.96; of somewhat fewer rows than b has columns, [700,256] x [1024,256]^T 0.91, [512,256] 0.96
/// to 1.01; with b of [1024,1024], 2 MB, 1.09 to 1.27; of [128,128], whose panels are not worth a tile of their
/// own, 1.01 to 1.15. Where rows run down the sum, as a weight's gradient has them, a panel is a line of each: 1.06
/// to 1.18.
bool stays_in_caches(const AmxOperand& a, const AmxOperand& b) {
  const int64_t of_b = b.panels() * b.panel_words() * 2, least = 1 << 16, most = 5 << 17;  // values
  const bool high = a.strips >= b.strips || (a.strips >= 512 && 3 * a.strips >= 2 * b.strips);
  return high && a.k_stride == 1 && a.k <= 1024 && of_b >= least && of_b <= most;
}

bool run(const Gemm& p) {
  const auto plain = [](const Matrix& m) { return m.dtype == Dtype::bf16 && (m.row == 1 || m.column == 1); };
  if (!plain(p.a) || !plain(p.b)) return false;
  const AmxOperand a{static_cast<const uint16_t*>(p.a.data), p.m, p.a.row, p.k, p.a.column, false},
      b{static_cast<const uint16_t*>(p.b.data), p.n, p.b.column, p.k, p.b.row, true};
  const bool by_panels = !p.of_many && stays_in_caches(a, b);
  Job job{p, a, b, !by_panels && p.m < p.n};
  const int64_t strips = job.other().strips, of_panel = a.panel_words(), count = job.shared().panels();
  const int64_t alone = std::clamp(most_words_alone / of_panel, most_panels, most_panels_alone);
  job.stripe = by_panels   ? panel
               : p.of_many ? std::min(round_up(strips, panel), alone * panel)
                           : std::clamp(round_up((strips + 7) / 8, panel), panel, most_panels * panel);
  const int64_t stripes = (strips + job.stripe - 1) / job.stripe;
  job.fetches = job.other().k_stride == 1 && job.stripe * p.k <= most_fetched &&
                (p.of_many || stripes >= least_stripes_to_fetch * threads());
  if (threads() > most_packers || count * panel * p.k > most_packed_by_each) {
    float* packed = scratch<float>(count * of_panel, Workspace::call);
    parallel_for(count, std::max<int64_t>(1, 4096 / p.k), [&](int64_t begin, int64_t end) {
      job.shared().pack_panels(packed + begin * of_panel, begin, end - begin);
    });
    job.packed_once = packed;
  }
  parallel_for(stripes, 1, [&](int64_t stripe, int64_t) { job.multiply_stripe(stripe * job.stripe); });
  return true;
}

const InstallSpecialGemm here{isa_amx, run};

}  // namespace
#endif
#include "cinta/backends/cpu/isa_end.h"
