// Results that are written past the caches. A line that two threads have read is slow to write where they share no
// cache, as each line waits for the other's to be given up: 28 ns on Zen 4, past the caches 4.5. Where they share one
// it takes 7 and 4.5, but a line that one thread alone has read takes 0.7, and 2.2 past the caches, where reading it
// again takes 1 more. So it is done where threads_far_apart(), with what all threads read next; and with what is in no
// cache and is not read soon, a large net's shadow (optimizer.cpp).
#pragma once
#include <cstring>
#if CINTA_ISA_LEVEL > 0
#include <immintrin.h>
#endif

#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/columns.h"
#include "cinta/backends/cpu/simd/rows.h"

#include "cinta/backends/cpu/isa_begin.h"

/// Copies, past the caches if `to` is whole lines. Others see it when the loop has ended: a thread ends its share of
/// one, and a loop of its own, with an instruction that waits for such stores.
inline void stream(void* to, const void* from, int64_t bytes) {
  if (reinterpret_cast<uintptr_t>(to) % 64 != 0 || bytes % 64 != 0) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
#if CINTA_ISA_LEVEL == 2
  for (int64_t i = 0; i < bytes; i += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(static_cast<char*>(to) + i),
                        _mm512_loadu_si512(static_cast<const char*>(from) + i));
#elif CINTA_ISA_LEVEL == 1
  for (int64_t i = 0; i < bytes; i += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(static_cast<char*>(to) + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(static_cast<const char*>(from) + i)));
#else
  std::memcpy(to, from, static_cast<size_t>(bytes));
#endif
}

/// As store() of at most `most` values side by side, but past the caches.
template <int64_t most, class T>
void stream_as(Dtype dtype, void* to, const T* values, int64_t count) {
  if (dtype == dtype_of<T>()) return stream(to, values, count * size_of(dtype));
  alignas(64) char stored[most * sizeof(double)];
  store(dtype, stored, 0, 1, values, count);
  stream(to, stored, count * size_of(dtype));
}

/// Parts of the rows of a result, as a loop computes them: where they lie, or in a buffer, from where they are stored,
/// past the caches if the rows are few, as each is then read by all threads; of more, a thread goes on with its own.
class PartsOfRows {
 public:
  explicit PartsOfRows(const View& matrix) : matrix_(matrix), streams_(rows_of(matrix) <= 512 && threads_far_apart()) {}
  float* begin(int64_t row, int64_t first, float* buffer) const {
    return streams_ ? buffer : part_target(matrix_, row, first, buffer);
  }
  void finish(int64_t row, int64_t first, int64_t count, const float* values) const {
    if (!streams_) return finish_part(matrix_, row, first, count, values);
    char* to = matrix_.as<char>() + (row_offset(matrix_, row) + first) * size_of(matrix_.dtype);
    stream_as<column_step>(matrix_.dtype, to, values, count);
  }

 private:
  const View& matrix_;
  bool streams_;
};

#include "cinta/backends/cpu/isa_end.h"
