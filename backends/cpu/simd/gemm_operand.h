// Operands of a product, packed for the register tiles of AVX2 and AVX-512: a panel holds the strips, which are rows of
// a or columns of b, that a tile multiplies at once, as words of 32 bits: a float, or two bf16 that follow each other
// along the sum. Narrower values are widened where nothing multiplies them faster.
#pragma once
#include <algorithm>
#include <type_traits>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/simd/convert.h"
#include "cinta/backends/cpu/simd/load_first.h"
#include "cinta/backends/cpu/simd/transpose.h"

#include "cinta/backends/cpu/isa_begin.h"
#if CINTA_ISA_LEVEL > 0

/// True iff operands are to become words of another size.
template <class Tile>
inline constexpr bool widens = Tile::steps_per_word * sizeof(typename Tile::Value) != sizeof(float);

/// f<Tile>() with the tile that multiplies operands of type `dtype`; false where there is none. Where
/// multiplies(bf16) none are widened: what the tile for those does not take, oneDNN multiplies faster.
template <class F>
bool with_product_tile(Dtype dtype, F f) {
  if (dtype == Dtype::f32) return f.template operator()<FloatTile>();
  if (dtype == Dtype::f16) return f.template operator()<WideningTile<f16>>();
  if (dtype != Dtype::bf16) return false;
  if (!multiplies(dtype)) return f.template operator()<WideningTile<bf16>>();
#if CINTA_ISA_LEVEL == 2
  return f.template operator()<Bf16Tile>();
#else
  return false;
#endif
}

/// Lines that a row of so many bytes may touch: it may begin inside one.
inline int64_t lines_of_row(int64_t bytes) { return (bytes + 62 + 63) / 64; }

/// `rows` rows of values, `pitch` apart, of which `width` count, from line number `first` on, where the first lines of
/// all rows come before the next ones; nothing if that lies beyond the last.
template <class Value>
LinesAhead lines_of(const Value* data, int64_t rows, int64_t pitch, int64_t width, int64_t first) {
  constexpr int64_t line = 64, item = sizeof(Value);
  const int64_t column = first / rows, row = first % rows;
  if (column >= lines_of_row(width * item)) return {};
  return {reinterpret_cast<const char*>(data + row * pitch) + column * line, pitch * item, rows, row};
}

/// An operand whose sum runs down the rows of memory; where a word holds two steps, each pair of rows is woven.
template <class Tile>
struct Woven {
  const typename Tile::Value* data;
  int64_t strips, row, k;
  int64_t width;  ///< strips of a panel: panel_rows or panel_columns

  int64_t panels() const { return (strips + width - 1) / width; }
  int64_t words() const { return (k + Tile::steps_per_word - 1) / Tile::steps_per_word; }
  /// Words from a step of a panel to the next: whole vectors, since those that cross lines are slow to store.
  int64_t pitch() const { return pitch_of(width); }
  /// Words from a panel to the next: a vector more than it has, so that they do not lie a power of two apart.
  int64_t panel_words() const { return words() * pitch() + vector_width; }
  int64_t room() const { return panels() * panel_words(); }
  /// `count` strips from `first` on, or those there are.
  Woven stripe(int64_t first, int64_t count) const {
    return {data + first, std::min(count, strips - first), row, k, width};
  }
  /// `count` steps of the sum from `first` on, which is a whole number of words, or those there are.
  Woven steps(int64_t first, int64_t count) const {
    return {data + first * row, strips, row, std::min(count, k - first), width};
  }

  /// What pack() reads, from line number `first` on.
  LinesAhead lines(int64_t first) const { return lines_of(data, k, row, strips, first); }
  int64_t line_count() const { return k * lines_of_row(strips * static_cast<int64_t>(sizeof(*data))); }

  void pack(float* out) const { width == panel_rows ? pack_panels<panel_rows>(out) : pack_panels<panel_columns>(out); }

 private:
  static constexpr int64_t pitch_of(int64_t panel) { return round_up(panel, vector_width); }

  template <int64_t panel>
  void pack_panels(float* out) const {
    constexpr int64_t at_once = 4;
    int64_t w = 0;
    for (; w + at_once <= k / Tile::steps_per_word; w += at_once)
      pack_words<panel, at_once>(out + w * pitch_of(panel), w);
    for (; w < words(); ++w) pack_words<panel, 1>(out + w * pitch_of(panel), w);
  }

  /// `count` words of every strip, from word w on. Several at once, as panels lie far apart.
  template <int64_t panel, int64_t count>
  void pack_words(float* out, int64_t w) const {
    constexpr int64_t ahead = 96;  // rows: they lie too far apart for the machine to see what comes next
    constexpr int64_t steps = Tile::steps_per_word;
    const int64_t words_from_panel = panel_words();
    const typename Tile::Value* step = data + w * steps * row;
    if ((w + count) * steps + ahead <= k)
      for (int64_t r = 0; r < count * steps; ++r)  // begun lines, too
        prefetch_far(step + (ahead + r) * row, strips * static_cast<int64_t>(sizeof(*step)) + 62);
    const bool paired = (w + count) * steps <= k;
    const auto pack_panel = [&](int64_t strip, int64_t exist) {
#pragma GCC unroll 4
      for (int64_t i = 0; i < count; ++i)
        pack_step<panel>(out + i * pitch_of(panel), step + i * steps * row + strip, exist, paired);
      out += words_from_panel;
    };
    int64_t strip = 0;
    for (; strip + pitch_of(panel) <= strips; strip += panel) pack_panel(strip, pitch_of(panel));
    for (; strip < strips; strip += panel) pack_panel(strip, strips - strip);
  }

  /// A panel's words of one step, zeros where strips end; what is beyond its width may be anything. The second row of a
  /// pair may not exist.
  template <int64_t panel>
  void pack_step(float* out, const typename Tile::Value* step, int64_t exist, [[maybe_unused]] bool paired) const {
    constexpr int64_t count = pitch_of(panel);
    if constexpr (Tile::steps_per_word == 1) {
      for (int64_t half = 0; half < count; half += vector_width)
        *reinterpret_cast<Vector*>(out + half) = load_first(step + half, exist - half);
    } else {
      const auto mask = static_cast<uint32_t>((uint64_t{1} << std::min(exist, panel)) - 1);
      const auto load_row = [&](const typename Tile::Value* at) {
        if (exist < count) return _mm512_maskz_loadu_epi16(mask, at);
        if constexpr (count > vector_width) return _mm512_loadu_si512(at);
        return _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
      };
      Tile::template weave<count>(out, load_row(step), paired ? load_row(step + row) : _mm512_setzero_si512());
    }
  }
};

/// Columns of b that lie along the sum, as the right operand: squares of their words are transposed. k is whole words.
template <class Tile>
struct Transposed {
  const typename Tile::Value* data;
  int64_t strips, row, k;  ///< row: values from a strip to the next

  int64_t words() const { return k / Tile::steps_per_word; }
  int64_t panel_words() const { return round_up(words(), vector_width) * panel_columns + vector_width; }
  Transposed stripe(int64_t first, int64_t count) const {
    return {data + first * row, std::min(count, strips - first), row, k};
  }

  /// What pack() reads, from line number `first` on.
  LinesAhead lines(int64_t first) const { return lines_of(data, strips, row, k, first); }

  void pack(float* out) const {
    for (int64_t strip = 0; strip < strips; strip += panel_columns, out += panel_words())
      for (int64_t w = 0; w < words(); w += vector_width)
        for (int64_t half = 0; half < panel_columns; half += vector_width)
          pack_square(out + w * panel_columns + half, strip + half, w);
  }

 private:
  using Word = std::conditional_t<widens<Tile>, typename Tile::Value, float>;

  void pack_square(float* out, int64_t strip, int64_t word) const {
    constexpr int64_t ahead = 2 * vector_width;  // words: further, and 32 strips push each other out of the first cache
    const int64_t exist = std::clamp<int64_t>(strips - strip, 0, vector_width), pitch = row / Tile::steps_per_word;
    const auto* in = reinterpret_cast<const Word*>(data + strip * row) + word;
    for (int64_t i = 0; i < exist; ++i) __builtin_prefetch(in + i * pitch + ahead);
    if (exist == vector_width && word + vector_width <= words())
      return transpose_rows(out, panel_columns, [&](int i) { return load_first(in + i * pitch, vector_width); });
    transpose_rows(out, panel_columns,
                   [&](int i) { return i < exist ? load_first(in + i * pitch, words() - word) : Vector{}; });
  }
};
#endif

#include "cinta/backends/cpu/isa_end.h"
