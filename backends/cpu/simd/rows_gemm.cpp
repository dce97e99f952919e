// The product of bf16 whose sum runs along the rows of a, as a layer's output and its input's gradient do: a is read
// where it lies, and stripes of b are packed into the words that AVX-512-BF16 multiplies, each by the threads that
// multiply with it.
#include <algorithm>
#include <atomic>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/bf16_operand.h"
#include "cinta/backends/cpu/simd/convert.h"

#include "cinta/backends/cpu/isa_begin.h"
#if CINTA_ISA_LEVEL == 2
namespace {

/// The sums of a register tile plus a bias to bf16. Where they go is fetched while they are made.
struct PutBf16 {
  char* y;
  int64_t pitch;  ///< bytes from a row to the next
  const float* bias;

  void prepare() const {
#pragma GCC unroll 16
    for (int i = 0; i < panel_rows; ++i) __builtin_prefetch(y + i * pitch, 1);
  }
  [[gnu::target("avx512bf16"), gnu::always_inline]] void operator()(const __m512* left, const __m512* right) const {
    const __m512 low = _mm512_load_ps(bias), high = _mm512_load_ps(bias + vector_width);
    char* out = y;
#pragma GCC unroll 16
    for (int i = 0; i < panel_rows; ++i, out += pitch)
      _mm512_storeu_si512(out, (__m512i)_mm512_cvtne2ps_pbh(right[i] + high, left[i] + low));
  }
};

constexpr int64_t most_packed = 384 << 10;  ///< bytes of a stripe of b, which is to stay in the second-level cache
constexpr int64_t blocks = 8;               ///< of a's rows: a tile of the loop multiplies one by a stripe

std::atomic<int64_t> numbers{1};  ///< of stripes, over all jobs

/// The stripe this thread has packed last: while its job goes on, it lies in the tile's workspace.
thread_local int64_t packed_number = 0;

template <class Operand>
struct Job {
  const Gemm& p;
  Operand b;
  int64_t panels, stripes;
  int64_t first_number;  ///< of the stripes

  void multiply_tile(int64_t tile) const {
    const int64_t stripe = tile / blocks, first = stripe * panels / stripes,
                  count = (stripe + 1) * panels / stripes - first, most = (panels + stripes - 1) / stripes;
    const Operand part = b.stripe(first * panel_columns, count * panel_columns);
    float* packed = scratch<float>(most * (b.panel_words() + panel_columns), Workspace::tile);
    float* bias = packed + most * b.panel_words();
    if (packed_number != first_number + stripe) {
      part.pack(packed);
      std::fill_n(bias, count * panel_columns, 0.0f);
      if (p.bias.data)
        load(bias, p.bias.dtype, p.bias.at(0, first * panel_columns), 0, p.bias.column, part.strips);
    }
    packed_number = first_number + stripe;
    const int64_t rows = round_up((p.m + blocks - 1) / blocks, panel_rows), begin = tile % blocks * rows;
    for (int64_t i = begin; i < std::min(p.m, begin + rows); i += panel_rows)
      for (int64_t c = 0; c < count; ++c)
        multiply_panel(i, (first + c) * panel_columns, packed + c * b.panel_words(), bias + c * panel_columns);
  }

  /// The register tile of y at (i, j).
  void multiply_panel(int64_t i, int64_t j, const float* panel, const float* bias) const {
    const int64_t above = std::max<int64_t>(0, i + panel_rows - p.m);  // at the lower edge, rows done before
    const auto* a = static_cast<const float*>(p.a.at(i - above, 0));
    const auto multiply_to = [&](const auto& put) {
      Bf16Tile::multiply_to<Walk::along_rows>(put, a, p.a.row / 2, panel, panel_columns, p.k / 2);
    };
    if (p.y.dtype == Dtype::bf16 && above == 0 && j + panel_columns <= p.n)
      return multiply_to(PutBf16{static_cast<char*>(p.y.at(i, j)), p.y.row * 2, bias});
    alignas(64) float sums[panel_rows * panel_columns];
    multiply_to(PutTile{sums, panel_columns, 1, false});
    const int64_t columns = std::min<int64_t>(panel_columns, p.n - j);
    for (int64_t r = above; r < panel_rows; ++r) {
      float* line = sums + r * panel_columns;
      for (int64_t c = 0; c < columns; ++c) line[c] += bias[c];
      store(p.y.dtype, p.y.at(i - above + r, j), 0, 1, line, columns);
    }
  }
};

template <class Operand>
bool run_with(const Gemm& p, const Operand& b) {
  const int64_t panels = (p.n + panel_columns - 1) / panel_columns,
                bytes = panels * b.panel_words() * static_cast<int64_t>(sizeof(float)),
                stripes = std::min(panels, std::max<int64_t>(2, (bytes + most_packed - 1) / most_packed));
  const Job<Operand> job{p, b, panels, stripes, numbers.fetch_add(stripes)};
  parallel_for(stripes * blocks, 1, [&](int64_t tile, int64_t) { job.multiply_tile(tile); });
  return true;
}

bool run(const Gemm& p) {
  // Words of two values are read from where they lie.
  const auto in_words = [&](const Matrix& m, int64_t row) {
    return reinterpret_cast<uintptr_t>(m.data) % 4 == 0 && row % 2 == 0 && p.k % 2 == 0;
  };
  const bool fits = p.a.dtype == Dtype::bf16 && p.b.dtype == Dtype::bf16 && p.a.column == 1 && in_words(p.a, p.a.row) &&
                    p.m >= panel_rows && p.y.column == 1 && (!p.bias.data || p.bias.row == 0) && p.alpha == 1 &&
                    p.beta == 0;
  const auto* b = static_cast<const uint16_t*>(p.b.data);
  if (fits && p.b.column == 1) return run_with(p, Woven{b, p.n, p.b.row, p.k, panel_columns});
  if (fits && p.b.row == 1 && in_words(p.b, p.b.column)) return run_with(p, Transposed{b, p.n, p.b.column, p.k});
  return false;
}

const InstallGemm here{isa_avx512_bf16, run};

}  // namespace
#endif
#include "cinta/backends/cpu/isa_end.h"
