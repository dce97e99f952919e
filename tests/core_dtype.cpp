// The narrow storage types, code by code, against tables written from the definitions of the formats.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "cinta/core/dtype.h"
#include "cinta/core/random.h"
#include "format_definitions.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

template <class T>
void check_decoding(const Format& f) {
  size_t wrong = 0;
  for (unsigned code = 0; code < 1u << f.bits(); ++code) {
    const auto stored = T::from_bits(static_cast<decltype(T::bits)>(code));
    const double want = value_of(f, code), got = static_cast<float>(stored);
    wrong += std::isnan(want) ? !std::isnan(got) : got != want || std::signbit(got) != std::signbit(want);
    // And back: every code is the code of its own value, but NaN and an infinity that saturates.
    if (!std::isnan(want) && !(f.saturates && std::isinf(want))) wrong += T(static_cast<float>(want)).bits != code;
  }
  CHECK(wrong == 0);
}

template <class T>
void check_one(const Format& f, const std::vector<double>& steps, float value) {
  const bool signed_zero = f.top != Top::nan_at_minus_zero;
  const auto check = [&](T found, bool saturates) {
    const double want = nearest(f, steps, value, saturates), got = static_cast<float>(found);
    const bool same =
        std::isnan(want) ? std::isnan(got) : got == want && (!signed_zero || std::signbit(got) == std::signbit(want));
    if (!same) FAIL_CHECK("f32 " << value << " becomes " << got << ", nearest is " << want);
  };
  check(T(value), f.saturates);
  for (bool saturates : {true, false})
    check(T::from_bits(T::encode(value, saturates ? Overflow::saturate : Overflow::special)), saturates);
}

template <class T>
void check_encoding(const Format& f) {
  const std::vector<double> steps = ladder(f);
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const auto middle = static_cast<float>((steps[i] + steps[i + 1]) / 2);
    for (float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY),
                        std::nextafter(static_cast<float>(steps[i]), INFINITY)})
      for (float sign : {1.0f, -1.0f}) check_one<T>(f, steps, sign * value);
  }
  const auto top = static_cast<float>(steps.back());
  const float step = top - static_cast<float>(steps[steps.size() - 2]);
  for (float value :
       {top, top + step / 4, top + step / 2, std::nextafter(top + step / 2, 0.0f), top + step, 2 * top,
        std::numeric_limits<float>::max(), INFINITY, NAN, 0.0f, 1e-45f, std::numeric_limits<float>::min()})
    for (float sign : {1.0f, -1.0f}) check_one<T>(f, steps, sign * value);
  for (uint64_t i = 0; i < 100000; ++i) {  // bit patterns of every exponent
    float value;
    const uint32_t word = random_word(1, 2, 3, i);
    std::memcpy(&value, &word, sizeof value);
    check_one<T>(f, steps, value);
  }
}

}  // namespace

TEST_CASE("every code of the narrow types decodes to its definition and encodes back", "[core]") {
  check_decoding<f16>(half);
  check_decoding<bf16>(brain);
  check_decoding<f8e4m3>(e4m3);
  check_decoding<f8e5m2>(e5m2);
  check_decoding<f8e4m3fnuz>(e4m3fnuz);
  check_decoding<f8e5m2fnuz>(e5m2fnuz);
}

TEST_CASE("rounding to a narrow type is to nearest even, at every midpoint and beside it", "[core]") {
  check_encoding<f16>(half);
  check_encoding<bf16>(brain);
  check_encoding<f8e4m3>(e4m3);
  check_encoding<f8e5m2>(e5m2);
  check_encoding<f8e4m3fnuz>(e4m3fnuz);
  check_encoding<f8e5m2fnuz>(e5m2fnuz);
}

TEST_CASE("the limits of the narrow types", "[core]") {
  CHECK(float{f16(65504.0f)} == 65504.0f);
  CHECK(float{f16(65519.99f)} == 65504.0f);
  CHECK(std::isinf(float{f16(65520.0f)}));
  CHECK(float{f8e4m3(1e9f)} == 448);
  CHECK(float{f8e4m3(-INFINITY)} == -448);
  CHECK(float{f8e5m2(INFINITY)} == 57344);
  CHECK(float{f8e4m3fnuz(1e9f)} == 240);
  CHECK(float{f8e5m2fnuz(1e9f)} == 57344);
  CHECK(f8e4m3fnuz(-0.0f).bits == 0);
  CHECK(f8e4m3fnuz(-1e-30f).bits == 0);
  CHECK(f16(-0.0f).bits == 0x8000);
  CHECK(f16(0x1p-24f).bits == 1);
  CHECK(f16(0x1p-25f).bits == 0);
  CHECK(bf16(NAN).bits == 0x7fc0);
}

TEST_CASE("types have their sizes, names and C++ types", "[core]") {
  constexpr int count = static_cast<int>(Dtype::boolean) + 1;
  for (int i = 0; i < count; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    CHECK(parse_dtype(name_of(dtype)) == dtype);
    visit(dtype, [&]<class T>() {
      CHECK(sizeof(T) == static_cast<size_t>(size_of(dtype)));
      CHECK(dtype_of<T>() == dtype);
    });
  }
  CHECK_FALSE(parse_dtype("float32"));
  CHECK(is_floating(Dtype::f8e5m2fnuz));
  CHECK_FALSE(is_floating(Dtype::i8));
}
