// The product of bf16 whose sum runs down the rows of both operands, as that of a weight gradient does: each pair of
// rows is woven into the words that AVX-512-BF16 multiplies. Operands are packed once, and by the thread that reads
// them: lines that another one wrote come late where threads share no cache.
#include <algorithm>
#include <atomic>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/convert.h"
#include "cinta/backends/cpu/simd/gemm_tile.h"

#include "cinta/backends/cpu/isa_begin.h"
#if CINTA_ISA_LEVEL == 2
namespace {

/// An operand, whose strips are the rows of a or the columns of b, packed in panels of as many as a register tile has.
struct Woven {
  const uint16_t* data;
  int64_t strips, row, k;
  int64_t width;  ///< strips of a panel: panel_rows or panel_columns

  int64_t panels(int64_t of) const { return (of + width - 1) / width; }
  int64_t words() const { return (k + 1) / 2; }
  /// Words from a step of a panel to the next: whole vectors, since those that cross lines are slow to store.
  int64_t pitch() const { return round_up(width, vector_width); }
  /// Words from a panel to the next: a vector more than it has, so that they do not lie a power of two apart.
  int64_t panel_words() const { return words() * pitch() + vector_width; }

  /// Packs `count` strips from `first` on.
  void pack(float* out, int64_t first, int64_t count) const {
    __m512i front, back;  // the words of elements 0 to 15 of two rows, and of 16 to 31
    for (int i = 0; i < vector_width; ++i) {
      reinterpret_cast<int32_t*>(&front)[i] = i | (i + 32) << 16;
      reinterpret_cast<int32_t*>(&back)[i] = (i + 16) | (i + 48) << 16;
    }
    constexpr int64_t ahead = 32;  // rows: they lie too far apart for the machine to see what comes next
    for (int64_t w = 0; w < words(); ++w) {
      const uint16_t* even = data + first + 2 * w * row;
      const bool paired = 2 * w + 1 < k;
      for (int64_t i = 0; i < (2 * w + ahead + 1 < k ? 2 : 0); ++i) prefetch(even + (ahead + i) * row, 2 * count + 62);
      float* words_of_panel = out + w * pitch();
      for (int64_t strip = 0; strip < count; strip += width, words_of_panel += panel_words()) {
        const int64_t exist = std::min(width, count - strip);
        const auto mask = static_cast<__mmask32>((uint64_t{1} << exist) - 1);
        const __m512i upper = _mm512_maskz_loadu_epi16(mask, even + strip),
                      lower = _mm512_maskz_loadu_epi16(paired ? mask : 0, even + strip + row);
        _mm512_store_si512(words_of_panel, _mm512_permutex2var_epi16(upper, front, lower));
        if (width > vector_width)
          _mm512_store_si512(words_of_panel + vector_width, _mm512_permutex2var_epi16(upper, back, lower));
      }
    }
  }
};

constexpr int64_t most_steps = 1024;   ///< of k at once
constexpr int64_t most_kept = 1024;    ///< strips that every thread keeps
constexpr int64_t most_striped = 192;  ///< strips that are packed at once

thread_local int64_t packed_for = 0;  ///< the job whose kept operand lies in this thread's workspace

struct Job {
  const Gemm& p;
  Woven kept, striped;  ///< packed by every thread as a whole; packed by the thread that multiplies a stripe of it
  bool keeps_b;
  int64_t stripe, number;

  void multiply_stripe(int64_t begin) const {
    const int64_t count = std::min(stripe, striped.strips - begin);
    float* of_kept =
        scratch<float>(kept.panels(kept.strips) * kept.panel_words() + striped.panels(stripe) * striped.panel_words(),
                       Workspace::tile);
    float* of_stripe = of_kept + kept.panels(kept.strips) * kept.panel_words();
    if (packed_for != number) kept.pack(of_kept, 0, kept.strips);
    packed_for = number;
    striped.pack(of_stripe, begin, count);
    for (int64_t s = 0; s < kept.panels(kept.strips); ++s)
      for (int64_t t = 0; t < striped.panels(count); ++t) {
        const float *one = of_kept + s * kept.panel_words(), *other = of_stripe + t * striped.panel_words();
        const int64_t i = s * kept.width, j = begin + t * striped.width;
        keeps_b ? multiply_panels(j, i, other, one) : multiply_panels(i, j, one, other);
      }
  }

  /// The register tile of y at (i, j).
  void multiply_panels(int64_t i, int64_t j, const float* a, const float* b) const {
    const int64_t rows = std::min<int64_t>(panel_rows, p.m - i), columns = std::min<int64_t>(panel_columns, p.n - j);
    const bool whole = rows == panel_rows && columns == panel_columns, add = p.beta != 0;
    const int64_t left_pitch = (keeps_b ? striped : kept).pitch();
    alignas(64) float edge[panel_rows * panel_columns];
    float* y = static_cast<float*>(p.y.at(i, j));
    Bf16Tile::multiply<Walk::along_columns>(whole ? y : edge, whole ? p.y.row : panel_columns, a, left_pitch, b,
                                            panel_columns, kept.words(), p.alpha, whole && add);
    if (whole) return;
    for (int64_t r = 0; r < rows; ++r, y += p.y.row)
      for (int64_t c = 0; c < columns; ++c) y[c] = edge[r * panel_columns + c] + (add ? y[c] : 0);
  }
};

/// A product whose kept operand is small enough.
void run_part(const Gemm& p) {
  static std::atomic<int64_t> jobs{0};
  const Woven a{static_cast<const uint16_t*>(p.a.data), p.m, p.a.column, p.k, panel_rows},
      b{static_cast<const uint16_t*>(p.b.data), p.n, p.b.row, p.k, panel_columns};
  const bool keeps_b = p.n <= p.m;
  Job job{p, keeps_b ? b : a, keeps_b ? a : b, keeps_b, 0, ++jobs};
  const Woven& striped = job.striped;
  job.stripe = std::min(round_up((striped.strips + 7) / 8, striped.width), most_striped);
  parallel_for((striped.strips + job.stripe - 1) / job.stripe, 1,
               [&](int64_t stripe, int64_t) { job.multiply_stripe(stripe * job.stripe); });
}

bool run(const Gemm& p) {
  const bool fits = p.a.dtype == Dtype::bf16 && p.b.dtype == Dtype::bf16 && p.a.row == 1 && p.b.column == 1 &&
                    p.y.dtype == Dtype::f32 && p.y.column == 1 && !p.bias.data && (p.beta == 0 || p.beta == 1);
  if (!fits) return false;
  const bool keeps_b = p.n <= p.m;
  for (int64_t k0 = 0; k0 < p.k; k0 += most_steps)
    for (int64_t first = 0; first < (keeps_b ? p.n : p.m); first += most_kept) {
      Gemm part = p;
      const int64_t i = keeps_b ? 0 : first, j = keeps_b ? first : 0;
      (keeps_b ? part.n : part.m) = std::min(most_kept, (keeps_b ? p.n : p.m) - first);
      part.k = std::min(most_steps, p.k - k0);
      part.a.data = p.a.at(i, k0);
      part.b.data = p.b.at(k0, j);
      part.y.data = p.y.at(i, j);
      part.beta = k0 > 0 ? 1 : p.beta;
      run_part(part);
    }
  return true;
}

const InstallGemm here{isa_avx512_bf16, run};

}  // namespace
#endif
#include "cinta/backends/cpu/isa_end.h"
