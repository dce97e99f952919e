// The product whose sum runs along the rows of a, as a layer's output and its input's gradient do, with AVX2 and
// AVX-512: a is read where it lies, or widened or packed some rows at a time, and stripes of b are packed, each by the
// threads that multiply with it. y lies by rows, or, where a layer of few samples is taken as the transposed product,
// by columns.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/convert.h"
#include "cinta/backends/cpu/simd/gemm_operand.h"
#include "cinta/backends/cpu/simd/left_rows.h"

#include "cinta/backends/cpu/isa_begin.h"
#if CINTA_ISA_LEVEL > 0
namespace {

/// The sums of a register tile, plus a bias or what was there, to where they belong, which is fetched meanwhile.
struct PutF32 {
  float* y;
  int64_t pitch;  ///< values from a row to the next
  const float* bias;
  bool add;

  template <int rows>
  [[gnu::always_inline]] void prepare() const {
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) prefetch_to_write(y + i * pitch, 2 * vector_bytes);
  }
  template <int rows>
  [[gnu::always_inline]] void operator()(const Vector (&left)[rows], const Vector (&right)[rows]) const {
    typedef Vector Unaligned __attribute__((aligned(4)));
    const Vector low = *reinterpret_cast<const Vector*>(bias),
                 high = *reinterpret_cast<const Vector*>(bias + vector_width);
    float* out = y;
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i, out += pitch) {
      Unaligned &first = *reinterpret_cast<Unaligned*>(out),
                &second = *reinterpret_cast<Unaligned*>(out + vector_width);
      // No `add ? first : low` in a sum: GCC 12 would read it as if it were aligned.
      first = add ? first + left[i] : low + left[i];
      second = add ? second + right[i] : high + right[i];
    }
  }
};
struct PutBf16 {
  bf16* y;
  int64_t pitch;
  const float* bias;

  template <int rows>
  [[gnu::always_inline]] void prepare() const {
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) prefetch_to_write(y + i * pitch, vector_bytes);
  }
  template <int rows>
  [[gnu::target("avx512bf16"), gnu::always_inline]] void operator()(const __m512 (&left)[rows],
                                                                    const __m512 (&right)[rows]) const {
    const __m512 low = _mm512_load_ps(bias), high = _mm512_load_ps(bias + vector_width);
    bf16* out = y;
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i, out += pitch)
      _mm512_storeu_si512(out, (__m512i)_mm512_cvtne2ps_pbh(right[i] + high, left[i] + low));
  }
};

/// Bytes of a stripe of b, which is to stay in the second-level cache beside the rows of a.
int64_t most_packed() {
  static const int64_t bytes = second_cache_bytes() / 8 * 3;
  return bytes;
}
constexpr int64_t longest_sum = 1 << 15;  ///< a panel of b lies in a thread's workspace as a whole
/// A tile of the loop multiplies a block of so many rows of a by a stripe; of more where that is soon done: some 10 us.
constexpr int64_t least_rows = 48, most_rows = 192, least_multiplications = 1 << 19;
/// Of a's rows so many are cut in halves, each of which goes through all stripes: two threads then write rows of their
/// own, as those do that compute row by row, and where they share no cache lines that both have read are slow to write
/// (2 GB/s; bf16[2048,256] x [256,1024] 378, 424 GF/s). Of fewer rows it pays to pack b twice if b is small beside a.
constexpr int64_t halved_from = 1024;
/// Words of a's rows that all stripes share: more rows are multiplied group by group, each of which packs b again, and
/// is halved by itself.
constexpr int64_t most_shared = 9 << 19;
static_assert(most_shared >= 4 * panel_rows * longest_sum);  // so that no group has less than a panel

std::atomic<int64_t> numbers{1};  ///< of stripes, over all jobs

/// The stripe this thread has packed last: while its job goes on, it lies in the tile's workspace.
thread_local int64_t packed_number = 0;

template <class Tile, class Operand>
struct Job {
  const Gemm& p;
  Operand b;
  int64_t panels, stripes, blocks, halves;
  int64_t first_number;  ///< of the stripes
  bool packs;            ///< whether rows of a are packed
  SharedLeft* shared;    ///< where the tiles of all stripes find them, or null

  /// What a tile of the loop multiplies: a block of rows of a by a stripe of b.
  struct Place {
    int64_t stripe, first, count;  ///< first, count: its panels
    int64_t block, begin, end;     ///< begin, end: rows
    int64_t end_of_half;           ///< rows of the half that the block is of
    bool ends_half;                ///< the next tile has the next stripe
  };
  Place place_of(int64_t tile) const {
    const int64_t of_half = blocks / halves, half = tile / (of_half * stripes), block = half * of_half + tile % of_half;
    const auto first_row = [&](int64_t of) {
      return std::min(p.m, of * ((p.m + panel_rows - 1) / panel_rows) / blocks * panel_rows);
    };
    const int64_t stripe = tile / of_half % stripes, first = first_of(stripe);
    return {.stripe = stripe,
            .first = first,
            .count = first_of(stripe + 1) - first,
            .block = block,
            .begin = first_row(block),
            .end = first_row(block + 1),
            .end_of_half = first_row((half + 1) * of_half),
            .ends_half = tile % of_half == of_half - 1};
  }

  /// A thread's workspace: a packed stripe and its bias; rows of a that are packed or widened; and of widened operands,
  /// where the results are narrow, those of a stripe's columns.
  struct Room {
    float *packed, *bias, *left, *lines;
    int64_t columns;  ///< of the largest stripe
  };
  Room take_room() const {
    const int64_t most = (panels + stripes - 1) / stripes, columns = most * panel_columns;
    // A plan asks one of many products, of which shorter ones may have fewer and so larger stripes.
    const int64_t asked = p.of_many ? panels : most,
                  of_packed = std::min(asked * b.panel_words(), most_packed() / 4 + b.panel_words()),
                  of_widened = widens<Tile> ? panel_rows * widened_pitch() : 0,
                  of_left = packs ? packed_left_words(p.k) : of_widened,
                  of_each = panel_columns * (1 + (by_lines() ? panel_rows : 0));  // panel: its bias and results
    float* all = scratch<float>(of_packed + of_left + asked * of_each, Workspace::tile);
    float *bias = all + of_packed, *left = bias + columns;
    return {all, bias, left, left + of_left, columns};
  }

  void multiply_tile(int64_t tile) const {
    const Place at = place_of(tile);
    const Room room = take_room();   // by every tile: a plan of a step's memory asks one of them
    if (at.begin == at.end) return;  // fewer rows than blocks
    pack(at.stripe, room);
    const bool packs_for_all = shared && at.stripe == 0,
               finds_packed = shared && at.stripe > 0 && shared->is_whole(at.block);
    Coming next;
    if (at.ends_half && at.stripe + 1 < stripes) next.stripe = stripe_at(at.stripe + 1);
    for (int64_t i = at.begin; i < at.end; i += panel_rows) {
      const int64_t lowest = std::min(i, p.m - panel_rows);  // of a, at the lower edge, rows that were done before, too
      const Left left = finds_packed ? Left{shared->panel(i), panel_rows}
                                     : left_rows(lowest, packs_for_all ? shared->panel(i) : room.left);
      const bool comes_next = i + 2 * panel_rows <= at.end_of_half;
      const LinesAhead rows = !comes_next    ? LinesAhead{}
                              : finds_packed ? shared->lines(i + panel_rows)
                                             : lines_of_left(i + panel_rows);
      with_height(p.m - i, [&]<int height>() { multiply_rows<height>(at, room, i, left, rows, next); });
    }
    if (packs_for_all) shared->set_whole(at.block);
  }

  /// The stripe that this thread packs next, if it is to be fetched already, and which line of it comes next.
  struct Coming {
    std::optional<Operand> stripe = {};
    int64_t line = 0;
  };

  /// `height` rows of y from row i on, or those there are: the first of the tile may have been done before. `rows` are
  /// fetched with the last panel, the next stripe with the others.
  template <int height>
  void multiply_rows(const Place& at, const Room& room, int64_t i, const Left& left, const LinesAhead& rows,
                     Coming& next) const {
    const int64_t above = std::max<int64_t>(0, i + height - p.m), skipped = panel_rows - height;
    for (int64_t c = 0; c < at.count; ++c) {
      LinesAhead ahead;
      if (c + 1 == at.count && rows.next)
        ahead = rows;
      else if (next.stripe)
        ahead = next.stripe->lines(std::exchange(next.line, next.line + b.words() / Tile::words_per_line));
      const auto multiply_to = [&](const auto& put) {
        const float* right = room.packed + c * b.panel_words();
        if constexpr (packs_left<Tile>)
          if (packs)
            return Tile::template multiply_to<Walk::along_columns, height>(put, left.data + skipped, left.pitch, right,
                                                                           panel_columns, b.words(), ahead);
        Tile::template multiply_to<Walk::along_rows, height>(put, left.data + skipped * left.pitch, left.pitch, right,
                                                             panel_columns, b.words(), ahead);
      };
      const float* bias = room.bias + c * panel_columns;
      if (by_lines())
        multiply_to(PutF32{room.lines + c * panel_columns, room.columns, bias, false});
      else
        multiply_panel<height>(i - above, above, (at.first + c) * panel_columns, bias, multiply_to);
    }
    if (!by_lines()) return;
    const int64_t j = at.first * panel_columns, exist = std::min(at.count * panel_columns, p.n - j);
    for (int64_t r = above; r < height; ++r)
      store(p.y.dtype, p.y.at(i - above + r, j), 0, 1, room.lines + r * room.columns, exist);
  }

  /// panel_rows rows of a where they lie, from row i on.
  LinesAhead lines_of_left(int64_t i) const { return {p.a.at(i, 0), p.a.row * size_of(p.a.dtype), panel_rows}; }

  bool by_lines() const { return widens<Tile> && p.y.dtype != Dtype::f32; }

  /// Packs a stripe, unless the thread has it of its last tile.
  void pack(int64_t stripe, const Room& room) const {
    const int64_t number = first_number + stripe;
    if (std::exchange(packed_number, number) == number) return;
    const Operand part = stripe_at(stripe);
    part.pack(room.packed);
    std::fill_n(room.bias, room.columns, 0.0f);
    if (p.bias.data && p.y.column == 1)
      load(room.bias, p.bias.dtype, p.bias.at(0, first_of(stripe) * panel_columns), 0, p.bias.column, part.strips);
  }

  int64_t widened_pitch() const { return round_up(p.k, vector_width) + vector_width; }  // no power of two
  /// Rows of a from row i on, as the tile reads them, in `room` if they are changed for that.
  Left left_rows(int64_t i, [[maybe_unused]] float* room) const {
    using Value = typename Tile::Value;
    // Nothing else is done meanwhile: all lines are asked for at once.
    if constexpr (widens<Tile>)
      for (int64_t r = 0; r < panel_rows; ++r) prefetch(p.a.at(i + r, 0), p.k * size_of(p.a.dtype));
    if constexpr (packs_left<Tile>)
      if (packs) {
        pack_left(room, static_cast<const Value*>(p.a.at(i, 0)), p.a.row, p.k);
        return {room, panel_rows};
      }
    if constexpr (widens<Tile>) {
      for (int64_t r = 0; r < panel_rows; ++r) {
        const auto* row = static_cast<const Value*>(p.a.at(i + r, 0));
        auto* out = reinterpret_cast<Vector*>(room + r * widened_pitch());
        int64_t k = 0;
        for (; k + vector_width <= p.k; k += vector_width) *out++ = load_first(row + k, vector_width);
        if (k < p.k) *out = load_first(row + k, p.k - k);
      }
      return {room, widened_pitch()};
    } else {
      return {static_cast<const float*>(p.a.at(i, 0)), p.a.row / Tile::steps_per_word};
    }
  }

  int64_t first_of(int64_t stripe) const { return stripe * panels / stripes; }
  Operand stripe_at(int64_t stripe) const {
    return b.stripe(first_of(stripe) * panel_columns, (first_of(stripe + 1) - first_of(stripe)) * panel_columns);
  }

  /// The register tile of y at (i, j), of which the rows `above` may have been done before, by multiply_to(put).
  template <int height, class Multiply>
  void multiply_panel(int64_t i, int64_t above, int64_t j, const float* bias, const Multiply& multiply_to) const {
    if constexpr (!widens<Tile>)
      if (p.y.column != 1) {
        alignas(64) float sums[vector_width * panel_columns];  // room for a square of whole vectors
        multiply_to(PutTile{sums, panel_columns, 1, false});
        return store_transposed<height>(i, above, j, sums);
      }
    if (above == 0 && j + panel_columns <= p.n) {
      if (p.y.dtype == Dtype::f32)
        return multiply_to(PutF32{static_cast<float*>(p.y.at(i, j)), p.y.row, bias, p.beta != 0});
      if constexpr (Tile::steps_per_word == 2)
        return multiply_to(PutBf16{static_cast<bf16*>(p.y.at(i, j)), p.y.row, bias});
    }
    alignas(64) float sums[height * panel_columns], old[panel_columns]{};
    multiply_to(PutTile{sums, panel_columns, 1, false});
    const int64_t columns = std::min<int64_t>(panel_columns, p.n - j);
    for (int64_t r = above; r < height; ++r) {
      float* line = sums + r * panel_columns;
      if (p.beta != 0) load(old, p.y.dtype, p.y.at(i + r, j), 0, 1, columns);
      for (int64_t c = 0; c < columns; ++c) line[c] += bias[c] + old[c];
      store(p.y.dtype, p.y.at(i + r, j), 0, 1, line, columns);
    }
  }

  /// The register tile of a y that lies by columns, from row `above` of the tile's on, with its bias, which goes by
  /// rows.
  template <int height>
  void store_transposed(int64_t i, int64_t above, int64_t j, const float* sums) const {
    alignas(64) float block[vector_width * vector_width], bias[vector_width]{};
    if (p.bias.data) load(bias, p.bias.dtype, p.bias.at(i, 0), 0, p.bias.row, height);
    const Vector added = *reinterpret_cast<const Vector*>(bias);
    for (int64_t half = 0; half < panel_columns; half += vector_width) {
      transpose_block(block, vector_width, sums + half, panel_columns);
      for (int64_t c = 0; c < std::min<int64_t>(vector_width, p.n - j - half); ++c) {
        const Vector line = *reinterpret_cast<const Vector*>(block + c * vector_width) + added;
        void* to = p.y.at(i, j + half + c);
        if (p.y.dtype == Dtype::f32)
          store_rows<height>(static_cast<float*>(to), above, line);
        else
          store_rows<height>(static_cast<typename Tile::Value*>(to), above, line);
      }
    }
  }
  /// Values `above` to `height`, and no others, which may be another thread's.
#if CINTA_ISA_LEVEL == 2
  template <int height>
  static void store_rows(float* to, int64_t above, Vector values) {
    _mm512_mask_storeu_ps(to, rows_from<height>(above), (__m512)values);
  }
  template <int height>
  [[gnu::target("avx512bf16")]] static void store_rows(bf16* to, int64_t above, Vector values) {
    _mm256_mask_storeu_epi16(to, rows_from<height>(above), (__m256i)_mm512_cvtneps_pbh((__m512)values));
  }
  template <int height>
  static __mmask16 rows_from(int64_t above) {
    return static_cast<__mmask16>(((1 << height) - 1) & -(1 << above));
  }
#else
  template <int height>
  static void store_rows(float* to, int64_t above, Vector values) {
    if (above == 0) return static_cast<void>(std::memcpy(to, &values, height * sizeof(float)));
    for (int64_t r = above; r < height; ++r) to[r] = values[r];
  }
#endif
};

/// Some rows of y and a.
Gemm rows_of(const Gemm& p, int64_t first, int64_t count) {
  Gemm part = p;
  part.m = count;
  part.y.data = p.y.at(first, 0);
  part.a.data = p.a.at(first, 0);
  if (p.bias.data) part.bias.data = p.bias.at(first, 0);
  return part;
}

template <class Tile, class Operand>
void multiply_by(const Gemm& whole, const Operand& b) {
  const int64_t panels = (whole.n + panel_columns - 1) / panel_columns,
                bytes = panels * b.panel_words() * static_cast<int64_t>(sizeof(float)),
                halves = whole.m < std::min(halved_from, 4 * whole.n) ? 1 : 2;
  // Of what is not halved an even number: of two threads both would pack the one in the middle.
  const int64_t stripes = std::min(panels, round_up((bytes + most_packed() - 1) / most_packed(), halves == 1 ? 2 : 1)),
                rows = std::clamp(least_multiplications * stripes / std::max<int64_t>(1, whole.n * whole.k), least_rows,
                                  most_rows);
  // Packed rows take fewer instructions, which counts on a wide Xeon alone: a Zen 4 begins half as many products a
  // cycle. On that Xeon what is to be widened may as well be packed. And packed rows of floats do not collide; widened
  // ones never do. Floats have to meet more than a few stripes to repay it; of two stripes that are not halved, a
  // second thread would begin with the other one, and find nothing. In a batch each thread would take so much memory.
  const bool may_pack = packs_left<Tile> && (is_wide_xeon() || (!widens<Tile> && whole.rows_collide())),
             shares = may_pack && stripes >= (widens<Tile> && halves == 2 ? 2 : 4) && !whole.of_many,
             packs = shares || (may_pack && widens<Tile>);
  const int64_t panels_of_rows = (whole.m + panel_rows - 1) / panel_rows,
                groups = shares ? (panels_of_rows * packed_left_words(whole.k) + most_shared - 1) / most_shared : 1;
  const auto begin_of = [&](int64_t group) { return group * panels_of_rows / groups * panel_rows; };
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t first = begin_of(group);
    const Gemm p = rows_of(whole, first, std::min(whole.m, begin_of(group + 1)) - first);
    const int64_t blocks = round_up(std::max<int64_t>(8, (p.m + rows - 1) / rows), 2);
    std::optional<SharedLeft> shared;
    if (shares) shared.emplace(p.m, p.k, blocks);
    const Job<Tile, Operand> job{
        p, b, panels, stripes, blocks, halves, numbers.fetch_add(stripes), packs, shared ? &*shared : nullptr};
    parallel_for(stripes * blocks, 1, [&](int64_t tile, int64_t) { job.multiply_tile(tile); });
  }
}

template <class Tile>
bool run_with(const Gemm& p) {
  constexpr int64_t steps = Tile::steps_per_word;
  using Value = typename Tile::Value;
  // Words are read from where they lie, but for those that are widened.
  const auto in_words = [&](const Matrix& m, int64_t row) {
    return reinterpret_cast<uintptr_t>(m.data) % (steps * sizeof(Value)) == 0 && row % steps == 0 && p.k % steps == 0;
  };
  const bool types = p.b.dtype == p.a.dtype && (p.y.dtype == p.a.dtype || p.y.dtype == Dtype::f32),
             adds = p.beta == 1 && p.y.dtype == Dtype::f32 && !p.bias.data,
             by_rows = p.y.column == 1 && (adds || p.beta == 0) && (!p.bias.data || p.bias.row == 0),
             by_columns = !widens<Tile> && p.y.row == 1 && p.y.column != 1 && p.beta == 0 &&
                          (!p.bias.data || p.bias.column == 0);
  if (!types || p.row_sums || p.alpha != 1 || p.a.column != 1 || !in_words(p.a, p.a.row) || !(by_rows || by_columns) ||
      p.m < panel_rows || p.k > longest_sum)
    return false;
  const auto* b = static_cast<const Value*>(p.b.data);
  if (p.b.column == 1) {
    multiply_by<Tile>(p, Woven<Tile>{b, p.n, p.b.row, p.k, panel_columns});
    return true;
  }
  if (p.b.row != 1 || !in_words(p.b, p.b.column)) return false;
  multiply_by<Tile>(p, Transposed<Tile>{b, p.n, p.b.column, p.k});
  return true;
}

bool run(const Gemm& p) {
  return with_product_tile(p.a.dtype, [&]<class Tile>() { return run_with<Tile>(p); });
}

const InstallSpecialGemm here{CINTA_ISA_LEVEL, run};

}  // namespace
#endif
#include "cinta/backends/cpu/isa_end.h"
