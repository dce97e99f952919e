// Storage types to and from the types that loops compute in: float; double where a value may not fit one; int64_t
// between integers. Rounding is exactly that of core/float_formats.h.
#pragma once
#include <bit>

#include "cinta/core/dtype.h"

#include "cinta/backends/cpu/isa_begin.h"

inline uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
inline float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }

/// A stored number as loops compute with it.
template <class T>
inline T value_of(T x) {
  return x;
}
inline float value_of(bf16 x) { return float_of(uint32_t{x.bits} << 16); }
inline float value_of(f16 x) {
  const uint32_t magnitude = x.bits & 0x7fffu, sign = (x.bits & 0x8000u) << 16;
  const uint32_t subnormal = bits_of(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t special = 0x7f800000u | magnitude << 13, normal = (magnitude << 13) + (112u << 23);
  return float_of(sign | (magnitude < 0x0400u ? subnormal : magnitude >= 0x7c00u ? special : normal));
}
inline float value_of(f8e4m3 x) { return x; }
inline float value_of(f8e5m2 x) { return x; }
inline float value_of(f8e4m3fnuz x) { return x; }
inline float value_of(f8e5m2fnuz x) { return x; }

/// out[i] = element first + i * stride of `data`, for i < count.
void load(float* out, Dtype dtype, const void* data, int64_t first, int64_t stride, int64_t count);
void load(double* out, Dtype dtype, const void* data, int64_t first, int64_t stride, int64_t count);
void load(int64_t* out, Dtype dtype, const void* data, int64_t first, int64_t stride, int64_t count);

/// Element first + i * stride of `data` = in[i], for i < count. Floating to integer truncates; to bool is x != 0.
void store(Dtype dtype, void* data, int64_t first, int64_t stride, const float* in, int64_t count);
void store(Dtype dtype, void* data, int64_t first, int64_t stride, const double* in, int64_t count);
void store(Dtype dtype, void* data, int64_t first, int64_t stride, const int64_t* in, int64_t count);

/// Fetches `bytes` from `data` on into the caches, for a loop that will come to them after some hundred cycles of work.
/// Loops that first convert and then compute else wait for memory and compute in turns. Always inlined: GCC takes a
/// function that does nothing but this for one without effect, and may leave out its calls.
[[gnu::always_inline]] inline void prefetch(const void* data, int64_t bytes) {
  for (int64_t byte = 0; byte < bytes; byte += 64) __builtin_prefetch(static_cast<const char*>(data) + byte);
}
/// The same for what will be written: a line that the other thread has read, too, is asked for once, and not a second
/// time as it is written, which takes 7 ns on an Emerald Rapids. At the baseline it is fetched to be read.
[[gnu::always_inline]] inline void prefetch_to_write(void* data, int64_t bytes) {
  for (int64_t byte = 0; byte < bytes; byte += 64) __builtin_prefetch(static_cast<char*>(data) + byte, 1);
}
/// What will be read, into the second-level cache, for pieces of rows that come some thousand cycles later: more
/// requests of this kind can be under way at once (128 B of each KiB: 54 us a MiB instead of 130 on Zen 4; whole rows,
/// which the machine sees coming, 30).
[[gnu::always_inline]] inline void prefetch_far(const void* data, int64_t bytes) {
  for (int64_t byte = 0; byte < bytes; byte += 64) __builtin_prefetch(static_cast<const char*>(data) + byte, 0, 2);
}

#include "cinta/backends/cpu/isa_end.h"
