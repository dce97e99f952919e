// Philox4x32-10 on many counters at once, and the dropout row.
#include "cinta/backends/cpu/simd/random.h"

#include <algorithm>

#include "cinta/backends/cpu/check.h"
#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/cpu/layout.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/convert.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

/// words[4i .. 4i+3] = random_block(seed, stream, step, first + i) of core/random.h.
void random_blocks(uint32_t* words, const DropoutSite& site, uint64_t first, int64_t count) {
  const uint32_t low = static_cast<uint32_t>(site.seed), high = static_cast<uint32_t>(site.seed >> 32);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t block = first + static_cast<uint64_t>(i);
    uint32_t w = static_cast<uint32_t>(block), x = static_cast<uint32_t>(block >> 32), y = site.stream, z = site.step;
    uint32_t key0 = low, key1 = high;
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53u} * w, b = uint64_t{0xCD9E8D57u} * y;
      w = static_cast<uint32_t>(b >> 32) ^ x ^ key0;
      x = static_cast<uint32_t>(b);
      y = static_cast<uint32_t>(a >> 32) ^ z ^ key1;
      z = static_cast<uint32_t>(a);
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    words[4 * i] = w;
    words[4 * i + 1] = x;
    words[4 * i + 2] = y;
    words[4 * i + 3] = z;
  }
}

void dropout_row(View y, View x, kernels::Dropout dropout) {
  require_narrow(y);
  require_narrow(x);
  const DropoutSite site(dropout);
  const int64_t columns = x.rank() ? x.size(-1) : 1, count = x.numel();
  const uint64_t first = static_cast<uint64_t>(site.first_row * columns);
  // Rows may lie apart; each tile is cut where a row ends or the buffers do.
  parallel_for(count, 16384, [&](int64_t begin, int64_t end) {
    constexpr int64_t piece = 512;
    float factors[piece], values[piece];
    for (int64_t at = begin; at < end;) {
      const int64_t row = at / columns, column = at % columns, n = std::min({end - at, columns - column, piece});
      dropout_factors(factors, site, first + static_cast<uint64_t>(at), n);
      load(values, x.dtype, x.data, row_offset(x, row) + column, 1, n);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) values[i] = masked(values[i], factors[i]);
      store(y.dtype, y.data, row_offset(y, row) + column, 1, values, n);
      at += n;
    }
  });
}
const InstallSimd dropout{kernels::dropout, dropout_row};

}  // namespace

void dropout_factors(float* out, const DropoutSite& site, uint64_t first, int64_t count) {
  constexpr int64_t blocks = 128;
  uint32_t words[4 * blocks];
  const uint32_t threshold = site.threshold;
  const float scale = site.scale;
  for (int64_t done = 0; done < count;) {
    const uint64_t element = first + static_cast<uint64_t>(done);
    const int64_t lead = static_cast<int64_t>(element % 4), n = std::min(4 * blocks - lead, count - done);
    random_blocks(words, site, element / 4, (lead + n + 3) / 4);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[done + i] = words[lead + i] >= threshold ? scale : 0;
    done += n;
  }
}

#include "cinta/backends/cpu/isa_end.h"
