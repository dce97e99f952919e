// The narrow floating-point types: f16, bf16 and four 8-bit formats to store, TF32 to feed matrix products; exact both
// ways. Rounding is to nearest, ties to even, or stochastic; NaN stays NaN. Unless told otherwise 8-bit formats
// saturate, an infinity too, and wider ones overflow to infinity.
// Formats: IEEE 754 binary16; bfloat16; OCP OFP8 (Micikevicius et al. 2022); FNUZ (Noune et al. 2022).
#pragma once
#include <bit>
#include <cstdint>

namespace cinta {

/// What the top exponent codes of a format mean.
enum class Specials : uint8_t {
  ieee,      ///< top exponent is infinity and NaN
  nan_only,  ///< only all-ones is NaN, no infinity (OCP E4M3)
  fnuz,      ///< NaN is the code of -0; no infinity, no -0
};

/// What becomes of a value beyond the largest that a format has.
enum class Overflow : uint8_t {
  saturate,  ///< the largest value, also of an infinity
  special,   ///< infinity, or NaN where there is no infinity
};

/// A float of 1 sign, E exponent and M mantissa bits, stored in Bits.
template <class Bits, int E, int M, int Bias, Specials S, Overflow Usual>
struct NarrowFloat {
  Bits bits;

  NarrowFloat() = default;
  constexpr explicit NarrowFloat(float value) : bits(encode(value)) {}
  constexpr operator float() const { return decode(bits); }
  static constexpr NarrowFloat from_bits(Bits bits) {
    NarrowFloat out(0.0f);
    out.bits = bits;
    return out;
  }

  static constexpr Bits sign_bit = Bits(Bits{1} << (E + M));
  static constexpr Bits mantissa_mask = Bits((Bits{1} << M) - 1);
  static constexpr Bits nan_code = S == Specials::fnuz ? sign_bit : Bits(sign_bit - 1);
  static constexpr Bits max_code = S == Specials::ieee       ? Bits(((1 << E) - 2) << M | mantissa_mask)
                                   : S == Specials::nan_only ? Bits(sign_bit - 2)
                                                             : Bits(sign_bit - 1);

  static constexpr float decode(Bits code) {
    const bool negative = code & sign_bit;
    const Bits magnitude = Bits(code & (sign_bit - 1));
    if (S == Specials::fnuz && code == sign_bit) return std::bit_cast<float>(0x7fc00000u);
    if (S == Specials::nan_only && magnitude == nan_code)
      return std::bit_cast<float>(0x7fc00000u | uint32_t{negative} << 31);
    const int exponent = magnitude >> M;
    const uint32_t mantissa = magnitude & mantissa_mask;
    if (S == Specials::ieee && exponent == (1 << E) - 1)
      return std::bit_cast<float>(uint32_t{negative} << 31 | 0x7f800000u | mantissa << (23 - M));
    float value = 0;
    if (exponent != 0) {
      value = std::bit_cast<float>(uint32_t(exponent - Bias + 127) << 23 | mantissa << (23 - M));
      if constexpr (E == 8) return std::bit_cast<float>(uint32_t{negative} << 31 | std::bit_cast<uint32_t>(value));
    } else if constexpr (E == 8) {
      return std::bit_cast<float>(uint32_t{negative} << 31 | mantissa << (23 - M));  // same exponent range as f32
    } else {
      value = static_cast<float>(mantissa) * std::bit_cast<float>(uint32_t(1 - Bias - M + 127) << 23);
    }
    return negative ? -value : value;
  }

  /// The nearest value; of two the one with the even code.
  static constexpr Bits encode(float value, Overflow overflow = Usual) {
    return encode(value, overflow, [](uint64_t kept, uint64_t rest, int shift) {
      const uint64_t half = uint64_t{1} << (shift - 1);
      return rest > half || (rest == half && (kept & 1));
    });
  }
  /// One of the two values around `value`, each as often as it is near, where `random` is uniform: so the mean over
  /// many is `value` (to 32 bits of the probability).
  static constexpr Bits encode_stochastic(float value, uint32_t random, Overflow overflow = Usual) {
    return encode(value, overflow, [random](uint64_t, uint64_t rest, int shift) {
      return rest > (shift <= 32 ? uint64_t{random} >> (32 - shift) : uint64_t{random} << (shift - 32));
    });
  }

 private:
  /// rounds_up(kept, rest, shift): whether a significand whose last `shift` bits `rest` are cut off grows by one.
  template <class RoundsUp>
  static constexpr Bits encode(float value, Overflow overflow, RoundsUp rounds_up) {
    const uint32_t word = std::bit_cast<uint32_t>(value);
    const Bits sign = word >> 31 ? sign_bit : Bits{0};
    const uint32_t magnitude = word & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return S == Specials::fnuz ? nan_code : Bits(sign | quiet_nan());
    uint64_t code = 0;
    if (magnitude >= 0x7f800000u) {
      code = uint64_t{max_code} + 1;
    } else {
      // Align the 24-bit significand so that the kept bits are the format's.
      const int exponent = magnitude >> 23 ? int(magnitude >> 23) : 1;
      const uint64_t significand = (magnitude & 0x7fffffu) | (magnitude >> 23 ? 0x800000u : 0u);
      const int target = exponent - 127 + Bias;
      const int shift = 23 - M + (target < 1 ? 1 - target : 0);
      constexpr int most = 24 + 32;  // beyond, what is cut off is less than 2^-32 of a step
      if (shift <= most) {
        const uint64_t kept = significand >> shift, rest = significand & ((uint64_t{1} << shift) - 1);
        code = kept + rounds_up(kept, rest, shift);
        if (target >= 1) code += uint64_t(target - 1) << M;
      }
    }
    if (code > max_code) code = overflow == Overflow::saturate ? uint64_t{max_code} : uint64_t{infinity()};
    if (S == Specials::fnuz && code == 0) return 0;
    return Bits(sign | Bits(code));
  }
  static constexpr Bits infinity() { return S == Specials::ieee ? Bits(max_code + 1) : nan_code; }
  static constexpr Bits quiet_nan() {
    return S == Specials::ieee ? Bits(((1 << E) - 1) << M | (1 << (M - 1))) : nan_code;
  }
};

using f16 = NarrowFloat<uint16_t, 5, 10, 15, Specials::ieee, Overflow::special>;
using bf16 = NarrowFloat<uint16_t, 8, 7, 127, Specials::ieee, Overflow::special>;
using f8e4m3 = NarrowFloat<uint8_t, 4, 3, 7, Specials::nan_only, Overflow::saturate>;
using f8e5m2 = NarrowFloat<uint8_t, 5, 2, 15, Specials::ieee, Overflow::saturate>;
using f8e4m3fnuz = NarrowFloat<uint8_t, 4, 3, 8, Specials::fnuz, Overflow::saturate>;
using f8e5m2fnuz = NarrowFloat<uint8_t, 5, 2, 16, Specials::fnuz, Overflow::saturate>;
/// What a tensor core reads of an f32 operand; never stored.
using tf32 = NarrowFloat<uint32_t, 8, 10, 127, Specials::ieee, Overflow::special>;

}  // namespace cinta
