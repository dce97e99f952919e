// Results that are written past the caches. A line that two threads have read is slow to write where they share no
// cache, as each line waits for the other's to be given up: 28 ns on Zen 4, past the caches 4.5. Where they share one
// it takes 7 and 4.5, but a line that one thread alone has read takes 0.7, and 2.2 past the caches, where reading it
// again takes 1 more. So it is done where threads_far_apart(), with what all threads read next.
#pragma once
#include <cstring>
#if CINTA_ISA_LEVEL > 0
#include <immintrin.h>
#endif

#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/columns.h"
#include "cinta/backends/cpu/simd/rows.h"

#include "cinta/backends/cpu/isa_begin.h"

/// Copies, past the caches if `to` is whole lines. Others see it after the loop: its last instruction, which says that
/// a tile is done, is a locked one and waits for such stores.
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

/// True iff parts of this result are to be streamed: of few rows, each is read by all threads, as products then cut the
/// weights; of more, a thread goes on with rows of its own.
inline bool streams(const View& matrix) { return rows_of(matrix) <= 512 && threads_far_apart(); }

/// As finish_part, but past the caches.
inline void stream_part(const View& matrix, int64_t row, int64_t first, int64_t count, const float* values) {
  const int64_t item = size_of(matrix.dtype);
  char* to = matrix.as<char>() + (row_offset(matrix, row) + first) * item;
  if (matrix.dtype == Dtype::f32) return stream(to, values, count * item);
  alignas(64) char stored[column_step * sizeof(double)];
  store(matrix.dtype, stored, 0, 1, values, count);
  stream(to, stored, count * item);
}

#include "cinta/backends/cpu/isa_end.h"
