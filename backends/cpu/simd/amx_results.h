// The results of a product by AMX: written some rows at a time while the tiles of the next panels are multiplied, which
// takes nothing but tiles, while a row of results waits for memory. On an Emerald Rapids, two threads, squares of 256
// terms in bf16: 1.5 times as fast as one after the other.
#pragma once
#include <algorithm>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/simd/amx_operand.h"
#include "cinta/backends/cpu/simd/convert.h"

#include "cinta/backends/cpu/isa_begin.h"

#if CINTA_ISA_LEVEL == 2
/// y = alpha * sums + bias + beta * y, one square of 32 x 32 after another.
class AmxResults {
 public:
  static constexpr int64_t side = AmxPanels::side, panel = AmxPanels::panel;

  /// A weight's gradient of at least so many values in f32, whose rows are pairs of whole lines, goes past the caches:
  /// its lines would else be read before they are written. Of the time, on an Emerald Rapids: BERT-base's 0.90, a
  /// decoder's [160,30522]^T x [160,768] 0.60, BERT-mini's, down to this size, 0.97 to 0.99; an MLP's step, whose
  /// update finds them in no cache then, 0.99 to 1.00. Smaller ones were not measured.
  static constexpr int64_t least_streamed = 1 << 16;

  explicit AmxResults(const Gemm& product) : p_(product) {}

  /// Fetches lines of the square at (i, j) from now on, whose sums are being made, unless they go past the caches.
  void expect(int64_t i, int64_t j) {
    next_i_ = i, next_j_ = j;
    next_ = static_cast<char*>(p_.y.at(i, j));
    to_fetch_ = p_.y.column == 1 && !past_caches_ ? std::min(panel, p_.m - i) : 0;
  }

  /// The sums of the expected square are complete, and stay until its rows are written. Those of the last one are.
  void begin(const float* sums) {
    i_ = next_i_, j_ = next_j_, sums_ = sums, out_ = static_cast<char*>(p_.y.at(i_, j_));
    rows_ = std::min(panel, p_.m - i_), columns_ = std::min(panel, p_.n - j_);
    if (p_.bias.data && p_.bias.row == 0)
      load(bias_, p_.bias.dtype, p_.bias.data, j_ * p_.bias.column, p_.bias.column, columns_);
  }

  /// Writes the next `count` rows, and fetches as many, by their last bytes: where a row begins in the middle of a
  /// line, that line is the square's before. Instructions are counted here: beside another thread of the core they take
  /// as long as the tiles.
  [[gnu::target("amx-tile,amx-bf16,avx512bf16"), gnu::always_inline]] void advance(int64_t count) {
    write(count);
    for (int64_t fetch = std::min(count, to_fetch_); fetch > 0; --fetch, --to_fetch_, next_ += line_)
      prefetch_to_write(next_ + 63, narrow_ ? 1 : 65);
  }

  /// The next `count` rows, if so many are left.
  [[gnu::target("avx512bf16")]] void write(int64_t count) {
    count = std::min(count, rows_);
    rows_ -= count;
    if (!simple_) return change(count);
    const __m512 low_bias = _mm512_load_ps(bias_), high_bias = _mm512_load_ps(bias_ + side);
    const auto exists = static_cast<__mmask32>((uint64_t{1} << columns_) - 1);
    for (; count > 0; --count, out_ += line_, sums_ += panel) {
      const __m512 low = _mm512_add_ps(_mm512_load_ps(sums_), low_bias),
                   high = _mm512_add_ps(_mm512_load_ps(sums_ + side), high_bias);
      if (narrow_) {
        _mm512_mask_storeu_epi16(out_, exists, (__m512i)_mm512_cvtne2ps_pbh(high, low));
      } else if (past_caches_) {
        _mm512_stream_ps(reinterpret_cast<float*>(out_), low);
        _mm512_stream_ps(reinterpret_cast<float*>(out_ + 64), high);
      } else {
        _mm512_mask_storeu_ps(out_, static_cast<__mmask16>(exists), low);
        _mm512_mask_storeu_ps(out_ + 64, static_cast<__mmask16>(exists >> side), high);
      }
    }
  }

 private:
  /// The same for all other products.
  [[gnu::noinline]] void change(int64_t count) {
    alignas(64) float changed[panel], old[panel]{};
    const Matrix &y = p_.y, &bias = p_.bias;
    for (; count > 0; --count, ++i_, sums_ += panel) {
      const int64_t first = i_ * y.row + j_ * y.column;
      if (bias.data && bias.row != 0)
        load(bias_, bias.dtype, bias.data, i_ * bias.row + j_ * bias.column, bias.column, columns_);
      if (p_.beta != 0) load(old, y.dtype, y.data, first, y.column, columns_);
      for (int64_t c = 0; c < panel; ++c) changed[c] = p_.alpha * sums_[c] + bias_[c] + p_.beta * old[c];
      store(y.dtype, y.data, first, y.column, changed, columns_);
    }
  }

  const Gemm& p_;
  const bool narrow_ = p_.y.dtype == Dtype::bf16, simple_ = (narrow_ || p_.y.dtype == Dtype::f32) && p_.y.column == 1 &&
                                                            p_.alpha == 1 && p_.beta == 0 &&
                                                            (!p_.bias.data || p_.bias.row == 0);
  const bool past_caches_ =
      simple_ && !narrow_ && p_.a.row == 1 && p_.m * p_.n >= least_streamed && p_.n % panel == 0 && p_.y.whole_lines();
  const int64_t line_ = p_.y.row * size_of(p_.y.dtype);  ///< bytes
  int64_t next_i_ = 0, next_j_ = 0, to_fetch_ = 0, i_ = 0, j_ = 0, rows_ = 0, columns_ = 0;
  const float* sums_ = nullptr;
  char *next_ = nullptr, *out_ = nullptr;
  alignas(64) float bias_[panel]{};
};
#endif

#include "cinta/backends/cpu/isa_end.h"
