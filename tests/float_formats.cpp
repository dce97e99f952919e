// What the formats can hold, the two ways to round into them, and goldens of numpy and ml_dtypes.
#include "cinta/core/format_facts.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cinta/core/random.h"
#include "cinta/data/file.h"
#include "format_definitions.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

/// How often each of two neighbours is chosen for `value`, which lies between them.
template <class T>
void check_odds(double low, double high, float value) {
  constexpr int count = 4096;
  int ups = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const float found = T::from_bits(T::encode_stochastic(value, random_word(5, 6, 7, i)));
    if (found != low && found != high) FAIL_CHECK(value << " became " << found << ", not " << low << " or " << high);
    ups += found == high;
  }
  const double odds = (value - low) / (high - low), deviation = std::sqrt(count * odds * (1 - odds));
  INFO(low << " < " << value << " < " << high << ": " << ups << " of " << count << " up, odds " << odds);
  CHECK(std::abs(ups - count * odds) <= 5 * deviation);
}

float float_of(uint32_t word) {
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("the facts of a format are those of its definition", "[core]") {
  for (const FormatFacts& facts : float_formats) {
    INFO(facts.name);
    CHECK(facts.largest ==
          std::ldexp(2 - std::ldexp(facts.name == "f8e4m3" ? 2 : 1, -facts.mantissa_bits), facts.top_exponent));
    CHECK(facts.smallest_subnormal == std::ldexp(1, facts.least_exponent - facts.mantissa_bits));
    CHECK(facts.smallest_normal == std::ldexp(1, facts.least_exponent));
  }
  each_format([]<class T>(const char* name, const Format& f) {
    INFO(name);
    const auto facts = std::ranges::find(float_formats, name, &FormatFacts::name);
    REQUIRE(facts != float_formats.end());
    const std::vector<double> steps = ladder(f);
    int nans = 0, infinities = 0;
    for (unsigned code = 0; code < 1u << f.bits(); ++code) {
      nans += std::isnan(value_of(f, code));
      infinities += std::isinf(value_of(f, code));
    }
    CHECK(facts->largest == steps.back());
    CHECK(facts->smallest_subnormal == steps[1]);
    CHECK(facts->smallest_normal == steps[size_t{1} << f.mantissa_bits]);
    CHECK(facts->nans == nans);
    CHECK(facts->infinities == infinities);
    CHECK(facts->negative_zero == (f.top != Top::nan_at_minus_zero));
  });
  CHECK(float_formats[0].largest == std::numeric_limits<float>::max());
  CHECK(float_formats[0].smallest_subnormal == std::numeric_limits<float>::denorm_min());
}

TEST_CASE("stochastic rounding chooses a neighbour as often as it is near", "[core]") {
  each_format([]<class T>(const char* name, const Format& f) {
    INFO(name);
    const std::vector<double> steps = ladder(f);
    for (size_t i : {size_t{0}, size_t{1}, size_t{2}, steps.size() / 3, steps.size() / 2, steps.size() - 2})
      for (double part : {0.5, 0.25, 0.9375, 0.01})
        for (int sign : {1, -1}) {
          const auto value = static_cast<float>(sign * (steps[i] + part * (steps[i + 1] - steps[i])));
          check_odds<T>(sign * steps[i], sign * steps[i + 1], value);
        }
    for (double step : steps)  // what needs no rounding is left alone
      for (uint32_t random : {0u, ~0u}) {
        const auto value = static_cast<float>(step);
        if (float{T::from_bits(T::encode_stochastic(value, random))} != value) FAIL_CHECK(value << " was changed");
      }
    CHECK(std::isnan(float{T::from_bits(T::encode_stochastic(NAN, 7))}));
    const auto beyond = static_cast<float>(steps.back() * 1.9);
    CHECK(float{T::from_bits(T::encode_stochastic(beyond, 7, Overflow::saturate))} == static_cast<float>(steps.back()));
    const float special = T::from_bits(T::encode_stochastic(-beyond, 7, Overflow::special));
    CHECK((f.top == Top::ieee ? special == -INFINITY : std::isnan(special)));
  });
}

TEST_CASE("TF32 keeps ten bits of a float's mantissa", "[core]") {
  for (uint32_t i = 0; i < 200000; ++i) {
    const float value = float_of(i < 1000 ? 0x3f800000u + (i << 10) : random_word(1, 2, 3, i));
    const float found = tf32(value);
    if (std::isnan(value)) {
      if (!std::isnan(found)) FAIL_CHECK("NaN became " << found);
      continue;
    }
    const int exponent = std::max(value == 0 || std::isinf(value) ? 0 : std::ilogb(value), -126);
    const double step = std::ldexp(1, exponent - 10);
    const double want = std::isinf(value) ? value : std::nearbyint(value / step) * step;
    if (found != static_cast<float>(want)) FAIL_CHECK(value << " became " << found << ", nearest is " << want);
  }
  CHECK(std::isinf(float{tf32(std::numeric_limits<float>::max())}));
}

TEST_CASE("the formats are those of numpy and ml_dtypes, bit by bit", "[core]") {
  const auto golden = nlohmann::json::parse(read_bytes(CINTA_SOURCE_DIR "/tests/golden/float_formats.json"));
  std::vector<float> values;  // as interop/float_formats.py makes them
  for (uint32_t i = 0; i < 1 << 20; ++i) values.push_back(float_of(i * 2654435761u + 12345u));
  for (uint32_t high = 0; high < 1 << 16; ++high)
    for (uint32_t low : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x3000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      values.push_back(float_of(high << 16 | low));
  each_format([&]<class T>(const char* name, const Format& f) {
    INFO(name);
    using Bits = decltype(T::bits);
    std::vector<float> decoded;
    for (unsigned code = 0; code < 1u << f.bits(); ++code) {
      const float value = T::from_bits(static_cast<Bits>(code));
      decoded.push_back(std::isnan(value) ? float_of(0x7fc00000u) : value);
    }
    CHECK(data::crc32_of(std::as_bytes(std::span(decoded))) == golden[name]["decoded"]);
    std::vector<Bits> encoded;
    for (float value : values) {
      const Bits code = T::encode(value, Overflow::special);
      encoded.push_back(std::isnan(float{T::from_bits(code)}) ? static_cast<Bits>(~Bits{0}) : code);
    }
    CHECK(data::crc32_of(std::as_bytes(std::span(encoded))) == golden[name]["encoded"]);
  });
}
