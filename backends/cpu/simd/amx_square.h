// A square of 32 x 32 sums by the tiles of AMX, of two packed panels: of bf16, or of f32, each value as three bf16. Six
// of the nine products of parts make one of floats (Henry, Tang, Heinecke, "Leveraging the bfloat16 Artificial
// Intelligence Datatype For Higher-Precision Computations", 2019): those left out are at most 2^-23 of |a b|, and the
// sum is rounded six times for 32 terms, where floats round it 32 times. An Emerald Rapids multiplies floats at 173
// GF/s a core and these at 350; beside a busy thread of the core, and with the next step fetched, at 85 to 125 and 120
// to 145.
#pragma once
#include "cinta/backends/cpu/simd/amx_parts.h"
#include "cinta/backends/cpu/simd/amx_results.h"
#include "cinta/backends/cpu/simd/amx_sums.h"

#include "cinta/backends/cpu/isa_begin.h"

#if CINTA_ISA_LEVEL == 2
/// Rows of an operand that are packed next, fetched into the second cache over so many steps, as many lines in each.
class StripeAhead {
 public:
  StripeAhead() = default;
  /// `strips` from `first` on, or those there are, over the terms begin to end.
  template <class Operand>
  StripeAhead(const Operand& operand, int64_t first, int64_t strips, int64_t begin, int64_t end, int64_t steps)
      : row_(reinterpret_cast<const char*>(operand.at(first, begin))),
        stride_(operand.strip_stride * item<Operand>),
        bytes_((std::min(end, operand.k) - begin) * item<Operand>),
        rows_(std::min(strips, operand.strips - first)),
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
  template <class Operand>
  static constexpr int64_t item = sizeof(*Operand::data);
  const char* row_ = nullptr;
  int64_t stride_ = 0, bytes_ = 0, rows_ = 0, lines_ = 0, byte_ = 0;
};

/// sums[32,32] = a panel of a times a panel of b over so many steps, and what the sums were if it `adds`; beside it
/// results are written, and what comes next is fetched. Of the last panel of a, where it has 16 rows or fewer, only its
/// first tiles are multiplied (not `two`).
template <class Operand, bool two>
[[gnu::target("amx-tile,amx-bf16,avx512bf16"), gnu::noinline]] void multiply_square(float* sums, const float* a,
                                                                                    const float* b, int64_t steps,
                                                                                    bool adds, AmxResults& results,
                                                                                    StripeAhead& ahead) {
  constexpr int64_t advances = Operand::in_parts ? 6 : 1;  // of the results, in a step
  const int64_t rows = (Operand::panel + steps * advances - 1) / (steps * advances);
  // The two tiles of one part of a step.
  const auto pair = [](const float* packed, int64_t part) {
    const float* first = packed + part * 2 * Operand::square;
    return AmxPair{first, first + Operand::square, Operand::side * sizeof(float)};
  };
  finish_stores();
  begin_sums<two>(sums, Operand::panel, adds);
  for (int64_t s = 0; s < steps; ++s, a += Operand::step_words, b += Operand::step_words) {
    if constexpr (Operand::in_parts) {
      const AmxPair high_a = pair(a, 0), middle_a = pair(a, 1), low_a = pair(a, 2);
      const AmxPair high_b = pair(b, 0), middle_b = pair(b, 1), low_b = pair(b, 2);
      // The next step into the first cache: beside a busy thread 1.2 times as fast.
      const float *next_a = a + Operand::step_words, *next_b = b + Operand::step_words;
      constexpr int64_t share = Operand::step_words / (two ? 24 : 12);  // of as many products
      const auto fetch = [&] {
        prefetch(next_a, share * sizeof(float));
        prefetch(next_b, share * sizeof(float));
        next_a += share;
        next_b += share;
      };
      add_products<two, true, true>(low_a, high_b, fetch);
      results.advance(rows);
      add_products<two, true, false>(middle_a, high_b, fetch);
      results.advance(rows);
      add_products<two, false, true>(middle_a, middle_b, fetch);
      results.advance(rows);
      add_products<two, true, false>(high_a, middle_b, fetch);
      results.advance(rows);
      add_products<two, false, true>(high_a, low_b, fetch);
      results.advance(rows);
      add_products<two, false, true>(high_a, high_b, fetch);
      results.advance(rows);
    } else {
      add_products<two, true, true>(pair(a, 0), pair(b, 0), [] {});
      results.advance(rows);
    }
    ahead.advance();
  }
  store_sums<two>(sums, Operand::panel);
  finish_stores();
}
#endif

#include "cinta/backends/cpu/isa_end.h"
