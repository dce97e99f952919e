// Storage types to and from the types that loops compute in: float; double where a value may not fit one; int64_t
// between integers. Rounding is exactly that of core/float_formats.h.
#pragma once
#include "cinta/core/dtype.h"

#include "cinta/backends/cpu/isa_begin.h"

/// out[i] = element first + i * stride of `data`, for i < count.
void load(float* out, Dtype dtype, const void* data, int64_t first, int64_t stride, int64_t count);
void load(double* out, Dtype dtype, const void* data, int64_t first, int64_t stride, int64_t count);
void load(int64_t* out, Dtype dtype, const void* data, int64_t first, int64_t stride, int64_t count);

/// Element first + i * stride of `data` = in[i], for i < count. Floating to integer truncates; to bool is x != 0.
void store(Dtype dtype, void* data, int64_t first, int64_t stride, const float* in, int64_t count);
void store(Dtype dtype, void* data, int64_t first, int64_t stride, const double* in, int64_t count);
void store(Dtype dtype, void* data, int64_t first, int64_t stride, const int64_t* in, int64_t count);

/// Fetches `bytes` from `data` on into the caches, for a loop that will come to them after some hundred cycles of work.
/// Loops that first convert and then compute else wait for memory and compute in turns.
inline void prefetch(const void* data, int64_t bytes) {
  for (int64_t byte = 0; byte < bytes; byte += 64) __builtin_prefetch(static_cast<const char*>(data) + byte);
}

#include "cinta/backends/cpu/isa_end.h"
