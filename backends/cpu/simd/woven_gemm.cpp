// The product whose sum runs down the rows of both operands, as that of a weight gradient does, with AVX2 and AVX-512.
// A thread packs what it reads: lines that another one wrote come late where threads share no cache. So one operand is
// packed by every thread, the other by stripes.
#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <utility>
#include <vector>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/halves.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/gemm_operand.h"

#include "cinta/backends/cpu/isa_begin.h"
#if CINTA_ISA_LEVEL > 0
namespace {

constexpr int64_t most_steps = 1024;   ///< of the sum, for which the kept operand is held
constexpr int64_t most_block = 256;    ///< steps that are packed at once: the next ones come meanwhile
constexpr int64_t most_kept = 1024;    ///< strips that every thread keeps
constexpr int64_t most_striped = 192;  ///< strips that are packed at once

inline void stream_vector(float* to, Vector values) {
#if CINTA_ISA_LEVEL == 2
  _mm512_stream_ps(to, (__m512)values);
#else
  _mm256_stream_ps(to, (__m256)values);
#endif
}

/// As PutTile without `add`, past the caches: `out` is whole lines. A line of y would else be read before it is
/// written.
struct StreamTile {
  float* out;
  int64_t stride;
  float scale;

  template <int rows>
  void prepare() const {}
  template <class V>
  [[gnu::always_inline]] void operator()(const V* left, const V* right) const {
    float* row = out;
#pragma GCC unroll 16
    for (int i = 0; i < panel_rows; ++i, row += stride) {
      stream_vector(row, (Vector)(scale * left[i]));
      stream_vector(row + vector_width, (Vector)(scale * right[i]));
    }
  }
};

/// The job whose kept operand this thread has packed last: while that job goes on, it lies in the tile's workspace.
thread_local int64_t packed_for = 0;

template <class Tile>
struct Job {
  Gemm p;
  Woven<Tile> kept;     ///< packed by every thread as a whole
  Woven<Tile> striped;  ///< packed by the thread that multiplies a stripe of it
  bool keeps_b;
  bool streams;  ///< y goes past the caches
  int64_t stripes;
  int64_t block;  ///< steps of the sum that are packed at once
  int64_t number;

  /// The first strip of a stripe, which is whole panels: no stripe has two more than another, so that threads end
  /// together.
  int64_t first_of(int64_t stripe) const { return stripe * striped.panels() / stripes * striped.width; }

  Woven<Tile> stripe_at(int64_t stripe) const {
    const int64_t begin = first_of(stripe);
    return striped.stripe(begin, first_of(stripe + 1) - begin);
  }

  void multiply_stripe(int64_t stripe) const {
    const int64_t begin = first_of(stripe), most = (striped.panels() + stripes - 1) / stripes * striped.width;
    const int64_t of_block = kept.steps(0, block).room(), blocks = (p.k + block - 1) / block;
    float* of_kept =
        scratch<float>(blocks * of_block + striped.stripe(0, most).steps(0, block).room(), Workspace::tile);
    float* of_part = of_kept + blocks * of_block;
    const bool packs_kept = std::exchange(packed_for, number) != number;
    const Woven<Tile> part = stripe_at(stripe);
    for (int64_t first = 0; first < p.k; first += block, of_kept += of_block) {
      const Packed kept_steps{kept.steps(first, block), of_kept}, part_steps{part.steps(first, block), of_part};
      if (packs_kept) kept_steps.operand.pack(of_kept);
      part_steps.operand.pack(of_part);
      if (p.row_sums && keeps_b) add_rows_up(part_steps, begin, first > 0);
      if (p.row_sums && !keeps_b && stripe == 0) add_rows_up(kept_steps, 0, first > 0);
      Coming coming;
      if (const int64_t next = first + block; next < p.k) {
        coming.part = part.steps(next, block);
        if (packs_kept) coming.kept = kept.steps(next, block);
      } else if (stripe + 1 < stripes) {
        coming.part = stripe_at(stripe + 1).steps(0, block);
      }
      multiply_block(begin, first > 0 || p.beta != 0, kept_steps, part_steps, coming);
    }
  }

  /// Some steps of an operand.
  struct Packed {
    Woven<Tile> operand;
    const float* words;
    const float* panel(int64_t i) const { return words + i * operand.panel_words(); }
  };

  /// Some steps of the rows of a from `begin` on, added up, or to what the steps before have left.
  void add_rows_up(const Packed& steps, int64_t begin, bool more) const {
    const Woven<Tile>& a = steps.operand;
    alignas(64) float sums[panel_columns];
    for (int64_t s = 0; s < a.panels(); ++s) {
      for (int64_t half = 0; half < a.pitch(); half += vector_width)
        Tile::add_up(sums + half, steps.panel(s) + half, a.pitch(), a.words());
      float* to = p.row_sums + begin + s * a.width;
      for (int64_t i = 0; i < std::min(a.width, a.strips - s * a.width); ++i)
        to[i] = sums[i] + (more || p.adds_row_sums ? to[i] : 0);
    }
  }

  /// What this thread packs next, fetched while it multiplies.
  struct Coming {
    Woven<Tile> part{}, kept{};
    int64_t line_count() const { return part.line_count() + kept.line_count(); }
    LinesAhead lines(int64_t first) const {
      if (first < part.line_count()) return part.lines(first);
      first -= part.line_count();
      return first < kept.line_count() ? kept.lines(first) : LinesAhead{};
    }
  };

  /// Some steps of the kept operand times those of the stripe that begins at strip `begin`.
  void multiply_block(int64_t begin, bool add, const Packed& kept_steps, const Packed& part_steps,
                      const Coming& coming) const {
    const int64_t words = kept_steps.operand.words(), panels = kept_steps.operand.panels(),
                  parts = part_steps.operand.panels(), lines_of_tile = words / Tile::words_per_line;
    // Fetched with the last tiles, so that those before do not push it out again.
    int64_t line = std::min<int64_t>(0, coming.line_count() - lines_of_tile * panels * parts);
    for (int64_t s = 0; s < panels; ++s)
      for (int64_t t = 0; t < parts; ++t) {
        const float *of_kept = kept_steps.panel(s), *of_part = part_steps.panel(t);
        const int64_t i = s * kept.width, j = begin + t * striped.width;
        line += lines_of_tile;
        const LinesAhead ahead = line <= 0 ? LinesAhead{} : coming.lines(std::max<int64_t>(0, line - lines_of_tile));
        const auto multiply_to = [&]<int rows = panel_rows>(const auto& put) {
          Tile::template multiply_to<Walk::along_columns, rows>(
              put, keeps_b ? of_part : of_kept, (keeps_b ? striped : kept).pitch(), keeps_b ? of_kept : of_part,
              panel_columns, words, ahead);
        };
        keeps_b ? put_panel(j, i, add, multiply_to) : put_panel(i, j, add, multiply_to);
      }
  }

  /// The register tile of y at (i, j), by multiply_to(put).
  template <class Multiply>
  void put_panel(int64_t i, int64_t j, bool add, const Multiply& multiply_to) const {
    const int64_t rows = std::min<int64_t>(panel_rows, p.m - i), columns = std::min<int64_t>(panel_columns, p.n - j);
    const bool whole = rows == panel_rows && columns == panel_columns;
    alignas(64) float edge[panel_rows * panel_columns];
    float* y = static_cast<float*>(p.y.at(i, j));
    if (whole && streams) return multiply_to(StreamTile{y, p.y.row, p.alpha});
    if (whole) return multiply_to(PutTile{y, p.y.row, p.alpha, add});
    with_height(rows, [&]<int height>() {
      multiply_to.template operator()<height>(PutTile{edge, panel_columns, p.alpha, false});
    });
    for (int64_t r = 0; r < rows; ++r, y += p.y.row)
      for (int64_t c = 0; c < columns; ++c) y[c] = edge[r * panel_columns + c] + (add ? y[c] : 0);
  }
};

std::atomic<int64_t> numbers{0};

/// The length of as few even parts of `whole` as are no longer than `most`.
int64_t part_of(int64_t whole, int64_t most) {
  const int64_t parts = (whole + most - 1) / most;
  return round_up((whole + parts - 1) / parts, 2 * panel_columns);
}

/// A product whose kept operand is small enough; `large`: its result is to go past the caches.
template <class Tile>
Job<Tile> job_of(const Gemm& p, bool keeps_b, bool large, int64_t block) {
  using Value = typename Tile::Value;
  const Woven<Tile> a{static_cast<const Value*>(p.a.data), p.m, p.a.column, p.k, panel_rows},
      b{static_cast<const Value*>(p.b.data), p.n, p.b.row, p.k, panel_columns};
  const Woven<Tile>& striped = keeps_b ? a : b;
  const int64_t stripes = std::max<int64_t>(8, (striped.strips + most_striped - 1) / most_striped);
  const bool streams = large && p.y.whole_lines() && p.beta == 0;
  return {p, keeps_b ? b : a, striped, keeps_b, streams, std::min(striped.panels(), stripes), block, ++numbers};
}

/// Products of equal m and n and about equal k, the longest first, side by side.
template <class Tile>
void run_all(std::initializer_list<Gemm> products) {
  const Gemm& one = *products.begin();
  const bool keeps_b = one.n <= one.m;
  const int64_t kept = keeps_b ? one.n : one.m, steps = part_of(one.k, most_steps), strips = part_of(kept, most_kept);
  for (int64_t k0 = 0; k0 < one.k; k0 += steps)
    for (int64_t first = 0; first < kept; first += strips) {
      const int64_t i = keeps_b ? 0 : first, j = keeps_b ? first : 0, width = std::min(strips, kept - first),
                    k = std::min(steps, one.k - k0);
      // By sizes alone, so that the order of a sum is, too; and the same for all, as one tile is asked for its
      // workspace.
      const bool read_again = products.size() > 1 || steps < one.k,
                 large = !read_again && width * (keeps_b ? one.m : one.n) >= least_streamed;
      const int64_t block = large ? k : part_of(k, most_block);  // a line past the caches cannot be added to
      std::vector<Job<Tile>> jobs;
      for (Gemm part : products) {
        if (part.k <= k0) continue;  // the shorter one may be done
        (keeps_b ? part.n : part.m) = width;
        part.k = std::min(steps, part.k - k0);
        part.a.data = part.a.at(i, k0);
        part.b.data = part.b.at(k0, j);
        part.y.data = part.y.at(i, j);
        if (k0 > 0) part.beta = 1, part.adds_row_sums = true;
        if (part.row_sums) part.row_sums = keeps_b && first > 0 ? nullptr : part.row_sums + i;
        jobs.push_back(job_of<Tile>(part, keeps_b, large, block));
      }
      const int64_t stripes = jobs[0].stripes, count = static_cast<int64_t>(jobs.size());
      parallel_for(count * stripes, 1,
                   [&](int64_t at, int64_t) { jobs[static_cast<size_t>(at / stripes)].multiply_stripe(at % stripes); });
    }
}

bool run(const Gemm& p) {
  const bool fits = p.a.dtype == p.b.dtype && p.a.row == 1 && p.b.column == 1 && p.y.dtype == Dtype::f32 &&
                    p.y.column == 1 && !p.bias.data && (p.beta == 0 || p.beta == 1);
  return fits && with_product_tile(p.a.dtype, [&]<class Tile>() {
           if (!is_halved(p)) {
             run_all<Tile>({p});
           } else {  // each thread then packs half of what is kept
             const Halves halves(p);
             run_all<Tile>({halves.first, halves.second});
             halves.add_up();
           }
           return true;
         });
}

const InstallSpecialGemm here{CINTA_ISA_LEVEL, run};

}  // namespace
#endif
#include "cinta/backends/cpu/isa_end.h"
