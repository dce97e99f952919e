// The product of bf16, or of f32 in parts, by the tiles of AMX. Both operands are packed into tiles: one of them,
// mostly the smaller, by every thread for itself, or, where threads are many or it is large, once for all; the other by
// stripes, each by the thread that multiplies it.
#include <algorithm>
#include <atomic>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/amx.h"
#include "cinta/backends/cpu/simd/amx_operand.h"
#include "cinta/backends/cpu/simd/amx_parts.h"
#include "cinta/backends/cpu/simd/amx_results.h"
#include "cinta/backends/cpu/simd/amx_square.h"
#include "cinta/backends/threads.h"

#include "cinta/backends/cpu/isa_begin.h"
#if CINTA_ISA_LEVEL == 2
namespace {

constexpr int64_t side = AmxPanels::side, panel = AmxPanels::panel, of_square = panel * panel;

constexpr int64_t most_panels = 4;  ///< of a stripe
/// Of a stripe where each thread has a product of its own: so many panels, for longer pieces of each row of memory, if
/// they are no more than so many words.
constexpr int64_t most_panels_alone = 8, most_words_alone = 1 << 17;

/// The next stripe is fetched while this one is multiplied if its rows lie along the sum, and, of bf16, if it is no
/// larger than this, and if one thread has all stripes, or each at least so many, so that most are followed by one of
/// the same thread. Of the time, on an Emerald Rapids, two threads, cold operands: the logits [160,768] x [30522,768]^T
/// 0.80 to 0.90, [169,256] x [30522,256]^T 0.84 to 0.87, layers 0.93 to 1.00, but in stripes of 576 KiB 1.03; of f32,
/// in which tiles take longer, four layers 0.94. Where the sum runs down the rows, gradients took 1.00 to 1.07.
constexpr int64_t most_fetched = 1 << 18, least_stripes_to_fetch = 4;  ///< values; of each thread

/// Threads, and words of a packed operand, up to which each packs all of it: what another one has packed comes from its
/// cache, line by line, and not before all have packed. Two threads: 0.92 of the time (products of BERT-mini's step on
/// an Emerald Rapids; of some MB 0.98).
constexpr int most_packers = 4;
constexpr int64_t most_packed_by_each = 2 << 20;
std::atomic<int64_t> jobs{0};
thread_local int64_t packed_for = 0;  ///< the job whose operand this thread has packed

/// Steps of the sum for which a stripe is packed at once, of f32: so many that four panels leave half of a second cache
/// of 2 MiB to the other operand.
constexpr int64_t most_steps = 32;

constexpr int64_t least_turned = 512;  ///< terms, of which turning squares of results takes no time that counts

/// Whether none of the first rows of a square, 16 or all, is infinite or no number.
bool finite(const float* sums, int64_t rows) {
  __m512 zeros[4]{};
  for (int64_t i = 0; i < rows * panel; i += 4 * side)
    for (int64_t v = 0; v < 4; ++v) zeros[v] += _mm512_setzero_ps() * _mm512_load_ps(sums + i + v * side);
  const __m512 zero = (zeros[0] + zeros[1]) + (zeros[2] + zeros[3]);
  return _mm512_cmp_ps_mask(zero, zero, _CMP_UNORD_Q) == 0;
}

/// The square at (i, j) by floats: of what is infinite, or rounds to infinity as a bf16, the sum of the parts is no
/// number, where the product may be infinite, or a number.
void multiply_floats(float* sums, const Gemm& p, int64_t i, int64_t j) {
  const int64_t rows = std::min(panel, p.m - i), columns = std::min(panel, p.n - j);
  alignas(64) float of_b[panel]{};
  std::fill_n(sums, of_square, 0.0f);
  for (int64_t k = 0; k < p.k; ++k) {
    const auto *a = static_cast<const float*>(p.a.at(i, k)), *b = static_cast<const float*>(p.b.at(k, j));
    for (int64_t c = 0; c < columns; ++c) of_b[c] = b[c * p.b.column];
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < panel; ++c) sums[r * panel + c] += a[r * p.a.row] * of_b[c];
  }
}

/// out = in^T, squares of 32 x 32.
void turn_square(float* out, const float* in) {
  for (int64_t i = 0; i < panel; i += side)
    for (int64_t j = 0; j < panel; j += side) transpose_block(out + j * panel + i, panel, in + i * panel + j, panel);
}

template <class Operand>
struct Job {
  const Gemm& p;
  Operand a, b;            ///< what tiles multiply: operands of p, or of y^T = b^T a^T
  bool turned;             ///< the latter
  bool rows_shared;        ///< a is packed as a whole, b by stripes; or the other way round
  int64_t stripe = panel;  ///< strips of the other
  bool fetches = false;    ///< the next stripe, while one is multiplied
  const int64_t number = ++jobs;
  const float* packed_once = nullptr;  ///< the whole operand, unless every thread packs it

  const Operand& shared() const { return rows_shared ? a : b; }
  const Operand& other() const { return rows_shared ? b : a; }

  /// Steps of the sum that are packed at once.
  int64_t block() const {
    const int64_t steps = a.steps(), blocks = Operand::in_parts ? (steps + most_steps - 1) / most_steps : 1;
    return (steps + blocks - 1) / blocks;
  }

  void multiply_stripe(int64_t begin) const {
    const AmxTiles<side, side, side, side, side, side, side, side> tiles;
    const int64_t panels = (std::min(stripe, other().strips - begin) + panel - 1) / panel, of_panel = a.panel_words(),
                  count = shared().panels(), steps = a.steps();
    // As much for every stripe, so that the whole operand stays where the thread's first one has put it.
    const int64_t most = stripe / panel, room = most * block() * Operand::step_words,
                  kept_words = block() < steps ? count * most * of_square : 0;
    float* own = scratch<float>(room + kept_words + (packed_once ? 0 : count * of_panel), Workspace::tile);
    float *const kept = own + room, *const all = kept + kept_words;
    if (!packed_once && packed_for != number) {
      shared().pack(all, 0, count, 0, steps);
      packed_for = number;
    }
    const float* packed = packed_once ? packed_once : all;
    alignas(64) float sums[2][of_square], turned_sums[2][of_square];
    AmxResults results(p);
    for (int64_t from = 0; from < steps; from += block()) {
      const int64_t to = std::min(from + block(), steps), words = (to - from) * Operand::step_words;
      other().pack(own, begin / panel, panels, from, to);
      const bool last = to == steps;
      const int64_t next = last ? begin + stripe : begin, next_from = last ? 0 : to;
      StripeAhead ahead;
      if (last ? fetches && next < other().strips : other().k_stride == 1)
        ahead = StripeAhead(other(), next, stripe, next_from * Operand::step, (next_from + block()) * Operand::step,
                            count * panels * (to - from));
      for (int64_t s = 0; s < count; ++s)
        for (int64_t o = 0; o < panels; ++o) {
          const int64_t of_shared = s * panel, of_other = begin + o * panel, square = s * panels + o;
          const float *from_shared = packed + s * of_panel + from * Operand::step_words, *from_own = own + o * words;
          float* made = kept_words > 0 ? kept + square * of_square : sums[square % 2];
          const int64_t i = rows_shared ? of_shared : of_other, j = rows_shared ? of_other : of_shared;
          const int64_t y_row = turned ? j : i, y_column = turned ? i : j;
          if (last) results.expect(y_row, y_column);
          const bool two = a.strips - i > side;
          const auto multiply = two ? multiply_square<Operand, true> : multiply_square<Operand, false>;
          multiply(made, rows_shared ? from_shared : from_own, rows_shared ? from_own : from_shared, to - from,
                   from > 0, results, ahead);
          if (!last) continue;
          const bool by_floats = Operand::in_parts && !finite(made, two ? panel : side);
          if (turned) {
            turn_square(turned_sums[square % 2], made);
            made = turned_sums[square % 2];
          }
          if (by_floats) multiply_floats(made, p, y_row, y_column);
          results.begin(made);
        }
    }
    results.write(panel);
  }
};

/// True iff a's rows are multiplied a panel at a time, where b fits the second cache: up to some 500 terms the panel
/// stays in the first one, where it was packed, and whole rows of results are written one after another; of f32, whose
/// panels are three times as large, the same was not measured apart. Of the time,
/// on an Emerald Rapids, two threads, cold operands, results in bf16: [1040,256] x [1024,256]^T 0.79 to 0.90, x
/// [256,256] 0.90 to 0.93, [2048,256] x [256,1024] 0.84 to 0.90, [1040,1024] x [256,1024]^T 0.93 to 1.00, [1024,768] x
/// [768,768] 0.88 to 0.96; of somewhat fewer rows than b has columns, [700,256] x [1024,256]^T 0.91, [512,256] 0.96
/// to 1.01; with b of [1024,1024], 2 MB, 1.09 to 1.27; of [128,128], whose panels are not worth a tile of their
/// own, 1.01 to 1.15. Where rows run down the sum, as a weight's gradient has them, a panel is a line of each: 1.06
/// to 1.18.
template <class Operand>
bool stays_in_caches(const Operand& a, const Operand& b) {
  const int64_t of_b = b.panels() * b.panel_words(), least = 1 << 15, most = 5 << 16;
  const bool high = a.strips >= b.strips || (a.strips >= 512 && 3 * a.strips >= 2 * b.strips);
  return high && a.k_stride == 1 && a.k <= 1024 && of_b >= least && of_b <= most;
}

template <class Operand, class Value>
void multiply(const Gemm& p) {
  // Of a weight's gradient both operands lie across, and the left one is transposed as it is packed: the smaller one.
  const bool turned = Operand::in_parts && p.a.column != 1 && p.b.column == 1 && p.m > p.n && p.k >= least_turned;
  const auto operand = [&](const Matrix& m, bool of_rows, bool right) {
    return Operand{{{},
                    static_cast<const Value*>(m.data),
                    of_rows ? p.m : p.n,
                    of_rows ? m.row : m.column,
                    p.k,
                    of_rows ? m.column : m.row,
                    right}};
  };
  const Operand a = turned ? operand(p.b, false, false) : operand(p.a, true, false),
                b = turned ? operand(p.a, true, true) : operand(p.b, false, true);
  const bool by_panels = !p.of_many && stays_in_caches(a, b);
  Job<Operand> job{p, a, b, turned, !by_panels && a.strips < b.strips};
  const int64_t strips = job.other().strips, of_panel = a.panel_words(), count = job.shared().panels();
  const int64_t alone =
      std::clamp(most_words_alone / (job.block() * Operand::step_words), most_panels, most_panels_alone);
  job.stripe = by_panels   ? panel
               : p.of_many ? std::min(round_up(strips, panel), alone * panel)
                           : std::clamp(round_up((strips + 7) / 8, panel), panel, most_panels * panel);
  const int64_t stripes = (strips + job.stripe - 1) / job.stripe;
  job.fetches = job.other().k_stride == 1 && (Operand::in_parts || job.stripe * p.k <= most_fetched) &&
                (p.of_many || stripes >= least_stripes_to_fetch * threads());
  if (threads() > most_packers || count * of_panel > most_packed_by_each) {
    float* packed = scratch<float>(count * of_panel, Workspace::call);
    parallel_for(count, std::max<int64_t>(1, 4096 / p.k), [&](int64_t begin, int64_t end) {
      job.shared().pack(packed + begin * of_panel, begin, end - begin, 0, a.steps());
    });
    job.packed_once = packed;
  }
  parallel_for(stripes, 1, [&](int64_t stripe, int64_t) { job.multiply_stripe(stripe * job.stripe); });
}

/// Whether f32 is worth being taken apart: its values are used so often on average. Of the time of floats, on an
/// Emerald Rapids, two threads, cold operands, in turns with and without busy neighbours: [2048,128] x [512,128]^T 0.66
/// to 0.94, [2048,256] x [1024,256]^T 0.73 to 0.94, [2048,1024] x [256,1024]^T 0.87 to 0.95, [1024,768] x [768,768]^T
/// 0.83 to 0.97, [1024,768] x [3072,768]^T 0.75 to 0.94, [320,128] x [4096,128]^T 0.72, [2048,128] x [128,128]^T 0.94
/// to 1.04; gradients [320,4096]^T x [320,128] 0.79, [2048,1024]^T x [2048,256] 0.91 to 0.97, [1024,768]^T x [1024,768]
/// 0.87 to 0.89; but [2048,512]^T x [2048,128] 0.86 to 1.07, [128,784] x [512,784]^T 0.96 to 1.13, [2048,128]^T x
/// [2048,128] 1.29, [320,4096] x [4096,128] 1.05 to 1.09, [64,784] x [256,784]^T 1.24 to 1.34.
bool worth_its_parts(const Gemm& p) { return p.k >= 64 && p.m * p.n >= 112 * (p.m + p.n); }

/// A product of f32 over so many terms at a time that what is packed of the smaller operand, half as much again as it
/// was, takes no more than 32 MiB, or of very many strips 1024 terms.
void multiply_by_terms(Gemm p) {
  constexpr int64_t most_words = 8 << 20, least_terms = 1024;
  const int64_t of_step = round_up(std::min(p.m, p.n), panel) / panel * PartsOperand::step_words,
                most = std::max(least_terms, most_words / of_step * AmxPanels::step), count = (p.k + most - 1) / most,
                terms = round_up((p.k + count - 1) / count, AmxPanels::step);
  for (int64_t left = p.k; left > 0; left -= terms) {
    p.k = std::min(left, terms);
    multiply<PartsOperand, float>(p);
    p.a.data = p.a.at(0, p.k), p.b.data = p.b.at(p.k, 0);
    p.bias = {}, p.beta = 1;
  }
}

bool run(const Gemm& p) {
  const auto plain = [](const Matrix& m) { return m.row == 1 || m.column == 1; };
  if (p.row_sums || p.a.dtype != p.b.dtype || !plain(p.a) || !plain(p.b)) return false;
  if (p.a.dtype == Dtype::bf16) return multiply<Bf16Operand, uint16_t>(p), true;
  if (p.a.dtype != Dtype::f32 || p.y.dtype != Dtype::f32 || !worth_its_parts(p)) return false;
  multiply_by_terms(p);
  return true;
}

const InstallSpecialGemm here{isa_amx, run};

}  // namespace
#endif
#include "cinta/backends/cpu/isa_end.h"
