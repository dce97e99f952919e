// Our conversions against the host functions of CUDA's headers, where these are installed: the same codes.
#include <catch2/catch.hpp>

#if __has_include(<cuda_fp8.h>)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <cstring>

#include "cinta/core/float_formats.h"
#include "cinta/core/random.h"

using namespace cinta;

namespace {

float float_of(uint32_t word) {
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

/// Calls f with every upper half of a float's bits beside lower halves around the ties, and with random bits.
template <class F>
void each_float(F f) {
  for (uint32_t high = 0; high < 1 << 16; ++high)
    for (uint32_t low : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      f(float_of(high << 16 | low));
  for (uint32_t i = 0; i < 1 << 18; ++i) f(float_of(random_word(1, 2, 3, i)));
}

template <class Ours, class Theirs>
void check_encoding(Overflow overflow, Theirs theirs) {
  size_t wrong = 0;
  each_float([&](float value) {
    const auto ours = Ours::from_bits(Ours::encode(value, overflow));
    const auto code = Ours::from_bits(theirs(value));
    // Their NaN has another sign or payload at times.
    wrong += std::isnan(float{code}) ? !std::isnan(float{ours}) : ours.bits != code.bits;
  });
  CHECK(wrong == 0);
}

template <class Ours, class Theirs>
void check_decoding(unsigned codes, Theirs theirs) {
  size_t wrong = 0;
  for (unsigned code = 0; code < codes; ++code) {
    const auto bits = static_cast<decltype(Ours::bits)>(code);
    const float ours = Ours::from_bits(bits), other = theirs(bits);
    wrong += std::isnan(other) ? !std::isnan(ours) : ours != other || std::signbit(ours) != std::signbit(other);
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("8-bit codes are those of cuda_fp8.h", "[core]") {
  for (auto [overflow, saturation] :
       {std::pair{Overflow::saturate, __NV_SATFINITE}, std::pair{Overflow::special, __NV_NOSAT}}) {
    check_encoding<f8e4m3>(overflow, [&](float x) { return __nv_cvt_float_to_fp8(x, saturation, __NV_E4M3); });
    check_encoding<f8e5m2>(overflow, [&](float x) { return __nv_cvt_float_to_fp8(x, saturation, __NV_E5M2); });
  }
  check_decoding<f8e4m3>(256, [](uint8_t code) { return float{__half{__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)}}; });
  check_decoding<f8e5m2>(256, [](uint8_t code) { return float{__half{__nv_cvt_fp8_to_halfraw(code, __NV_E5M2)}}; });
}

TEST_CASE("16-bit codes are those of cuda_fp16.h and cuda_bf16.h", "[core]") {
  check_encoding<f16>(Overflow::special, [](float x) { return __half_raw(__float2half_rn(x)).x; });
  check_encoding<bf16>(Overflow::special, [](float x) { return __nv_bfloat16_raw(__float2bfloat16_rn(x)).x; });
  check_decoding<f16>(1 << 16, [](uint16_t code) { return __half2float(__half(__half_raw{code})); });
  check_decoding<bf16>(1 << 16, [](uint16_t code) { return __bfloat162float(__nv_bfloat16(__nv_bfloat16_raw{code})); });
}

#else

TEST_CASE("codes are those of CUDA's headers", "[core]") { WARN("skipped: no cuda_fp8.h is installed"); }

#endif
