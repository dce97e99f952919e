// Conversion loops, one per pair of a storage type and a computing type. The 16-bit formats have straight-line forms
// here, which vectorise; the 8-bit ones go through core/float_formats.h one by one.
#include "cinta/backends/cpu/simd/convert.h"

#include <cmath>
#include <type_traits>
#if CINTA_ISA_LEVEL == 2
#include <immintrin.h>
#endif

#include "cinta/backends/cpu/isa_begin.h"
namespace {

inline bf16 to_bf16(float x) {
  const uint32_t bits = bits_of(x), rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  const uint32_t nan = (bits >> 16 & 0x8000u) | 0x7fc0u;
  return std::bit_cast<bf16>(static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded));
}
inline f16 to_f16(float x) {
  const uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  // Below 2^-14 the formats' steps are even: adding 1/2, whose step is 2^-24, rounds.
  const uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1)) >> 13;
  const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t code = magnitude < 0x38800000u ? subnormal : magnitude >= 0x477ff000u ? special : normal;
  return std::bit_cast<f16>(static_cast<uint16_t>(sign | code));
}

/// The float on x's side of which a second rounding falls as one from x would: x itself, or the odd one of its
/// neighbours.
inline float before_rounding(float x) { return x; }
inline float before_rounding(double x) {
  const float nearest = static_cast<float>(x);
  const uint32_t bits = bits_of(nearest) - (std::abs(nearest) > std::abs(x) ? 1 : 0);
  return nearest == x ? nearest : float_of(bits | 1);
}
inline float before_rounding(int64_t x) { return before_rounding(static_cast<double>(x)); }

/// x as storage type S.
template <class S, class T>
inline S stored(T x) {
  if constexpr (std::is_same_v<S, bf16>)
    return to_bf16(before_rounding(x));
  else if constexpr (std::is_same_v<S, f16>)
    return to_f16(before_rounding(x));
  else if constexpr (std::is_arithmetic_v<S>)
    return static_cast<S>(x);
  else
    return S(before_rounding(x));
}

#if CINTA_ISA_LEVEL == 2
const bool has_bf16 = isa_level() >= isa_avx512_bf16;

/// to_bf16 of 32 floats in one instruction, which reads subnormals as 0 and keeps the payload of a NaN: numbers beside
/// either go the plain way.
__attribute__((target("avx512bf16"))) void store_bf16(bf16* out, const float* in, int64_t count) {
  constexpr int nan_or_subnormal = 0x01 | 0x80 | 0x20, width = 64;
  int64_t i = 0;
  for (; i + width <= count; i += width) {
    const __m512 a = _mm512_loadu_ps(in + i), b = _mm512_loadu_ps(in + i + 16), c = _mm512_loadu_ps(in + i + 32),
                 d = _mm512_loadu_ps(in + i + 48);
    const auto special = [](__m512 x) { return _mm512_fpclass_ps_mask(x, nan_or_subnormal); };
    if (special(a) | special(b) | special(c) | special(d)) [[unlikely]] {
      for (int64_t j = i; j < i + width; ++j) out[j] = to_bf16(in[j]);
    } else {
      _mm512_storeu_si512(out + i, (__m512i)_mm512_cvtne2ps_pbh(b, a));
      _mm512_storeu_si512(out + i + 32, (__m512i)_mm512_cvtne2ps_pbh(d, c));
    }
  }
  for (; i < count; ++i) out[i] = to_bf16(in[i]);
}
#endif

template <class T>
void load_any(T* out, Dtype dtype, const void* data, int64_t first, int64_t stride, int64_t count) {
  visit(dtype, [=]<class S>() {
    const S* in = static_cast<const S*>(data) + first;
    if (stride == 1) {
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(value_of(in[i]));
    } else if (stride == 0) {
      const T value = static_cast<T>(value_of(*in));
      for (int64_t i = 0; i < count; ++i) out[i] = value;
    } else {
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(value_of(in[i * stride]));
    }
  });
}

template <class T>
void store_any(Dtype dtype, void* data, int64_t first, int64_t stride, const T* in, int64_t count) {
  visit(dtype, [=]<class S>() {
    S* out = static_cast<S*>(data) + first;
    if (stride == 1) {
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) out[i] = stored<S>(in[i]);
    } else {
      for (int64_t i = 0; i < count; ++i) out[i * stride] = stored<S>(in[i]);
    }
  });
}

}  // namespace

void load(float* out, Dtype dtype, const void* data, int64_t first, int64_t stride, int64_t count) {
  load_any(out, dtype, data, first, stride, count);
}
void load(double* out, Dtype dtype, const void* data, int64_t first, int64_t stride, int64_t count) {
  load_any(out, dtype, data, first, stride, count);
}
void load(int64_t* out, Dtype dtype, const void* data, int64_t first, int64_t stride, int64_t count) {
  load_any(out, dtype, data, first, stride, count);
}
void store(Dtype dtype, void* data, int64_t first, int64_t stride, const float* in, int64_t count) {
#if CINTA_ISA_LEVEL == 2
  if (dtype == Dtype::bf16 && stride == 1 && has_bf16)
    return store_bf16(static_cast<bf16*>(data) + first, in, count);
#endif
  store_any(dtype, data, first, stride, in, count);
}
void store(Dtype dtype, void* data, int64_t first, int64_t stride, const double* in, int64_t count) {
  store_any(dtype, data, first, stride, in, count);
}
void store(Dtype dtype, void* data, int64_t first, int64_t stride, const int64_t* in, int64_t count) {
  store_any(dtype, data, first, stride, in, count);
}

#include "cinta/backends/cpu/isa_end.h"
