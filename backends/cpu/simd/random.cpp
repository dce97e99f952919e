// Philox4x32-10 on many counters at once, and the dropout row.
#include "cinta/backends/cpu/simd/random.h"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/cpu/layout.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/convert.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

// Counters lie in the low halves of 64-bit lanes, so that one instruction makes the whole product of two halves; what
// is in the high halves never matters. Compilers do not find this form by themselves.
constexpr int64_t lane_count = 2 << CINTA_ISA_LEVEL;
typedef uint64_t Lanes __attribute__((vector_size(8 * lane_count)));

/// The product of the low halves.
inline Lanes multiply(Lanes a, uint32_t factor) {
  const Lanes b = Lanes{} + factor;
#if CINTA_ISA_LEVEL == 2
  return (Lanes)_mm512_maskz_mul_epu32(0xff, (__m512i)a, (__m512i)b);  // the plain form makes GCC 12 warn
#elif CINTA_ISA_LEVEL == 1
  return (Lanes)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return (Lanes)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
  return (a & 0xffffffffu) * b;
#endif
}

/// words[4i .. 4i+3] = random_block(seed, stream, step, first + i) of core/random.h, for i < count rounded up to
/// whole vectors.
void random_blocks(uint32_t* words, const WordSource& source, uint64_t first, int64_t count) {
  const uint32_t low = static_cast<uint32_t>(source.seed), high = static_cast<uint32_t>(source.seed >> 32);
  const uint64_t stream = source.stream, step = source.step;
  Lanes counters;
  for (int64_t lane = 0; lane < lane_count; ++lane) counters[lane] = first + static_cast<uint64_t>(lane);
  for (int64_t i = 0; i < count; i += lane_count, counters += lane_count) {
    Lanes w = counters, x = w >> 32, y = Lanes{} + stream, z = Lanes{} + step;
    uint32_t key0 = low, key1 = high;
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const Lanes a = multiply(w, 0xD2511F53u), b = multiply(y, 0xCD9E8D57u);
      w = (b >> 32) ^ x ^ key0;
      x = b;
      y = (a >> 32) ^ z ^ key1;
      z = a;
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    const Lanes front = (w & 0xffffffffu) | x << 32, back = (y & 0xffffffffu) | z << 32;
    uint64_t pairs[2 * lane_count];
    for (int64_t lane = 0; lane < lane_count; ++lane) pairs[2 * lane] = front[lane], pairs[2 * lane + 1] = back[lane];
    std::memcpy(words + 4 * i, pairs, sizeof pairs);
  }
}

/// Calls f(words, i, n) for pieces of [0, count): words[0 .. n) are those of the elements from first + i on.
template <class F>
void each_words(const WordSource& source, uint64_t first, int64_t count, F f) {
  constexpr int64_t blocks = 128;
  alignas(64) uint32_t words[4 * blocks];
  for (int64_t done = 0; done < count;) {
    const uint64_t element = first + static_cast<uint64_t>(done);
    const int64_t lead = static_cast<int64_t>(element % 4), n = std::min(4 * blocks - lead, count - done);
    random_blocks(words, source, element / 4, (lead + n + 3) / 4);
    f(words + lead, done, n);
    done += n;
  }
}

void dropout_row(View y, View y_too, View x, kernels::Dropout dropout) {
  const DropoutRecord site(dropout);
  const int64_t columns = x.rank() ? x.size(-1) : 1, count = x.numel();
  // Rows may lie apart; each tile is cut where a row ends or the buffers do.
  parallel_for(count, elements_of_tile, [&](int64_t begin, int64_t end) {
    constexpr int64_t piece = 512;
    float factors[piece], values[piece];
    for (int64_t at = begin; at < end;) {
      const int64_t row = at / columns, column = at % columns, n = std::min({end - at, columns - column, piece});
      dropout_factors(factors, site, site.first_element(row, columns) + static_cast<uint64_t>(column), n);
      load(values, x.dtype, x.data, row_offset(x, row) + column, 1, n);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) values[i] = masked(values[i], factors[i]);
      for (const View* out : {&y, &y_too})
        if (*out) store(out->dtype, out->data, row_offset(*out, row) + column, 1, values, n);
      at += n;
    }
  });
}
const InstallSimd dropout{kernels::dropout, dropout_row, floats_of_32_bits};

}  // namespace

void random_words(uint32_t* out, const WordSource& source, uint64_t first, int64_t count) {
  each_words(source, first, count, [=](const uint32_t* words, int64_t done, int64_t n) {
    std::memcpy(out + done, words, sizeof(uint32_t) * static_cast<size_t>(n));
  });
}

void dropout_factors(float* out, const DropoutRecord& site, uint64_t first, int64_t count) {
  const uint32_t threshold = site.threshold;
  const float scale = site.scale;
  each_words(site, first, count, [=](const uint32_t* words, int64_t done, int64_t n) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[done + i] = words[i] >= threshold ? scale : 0;
  });
}

#include "cinta/backends/cpu/isa_end.h"
