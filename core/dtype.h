// Storage types: a run-time value, resolved to a C++ type once, at a kernel's door, by visit().
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cinta/core/error.h"
#include "cinta/core/float_formats.h"

namespace cinta {

enum class Dtype : uint8_t { f64, f32, f16, bf16, f8e4m3, f8e5m2, f8e4m3fnuz, f8e5m2fnuz, i8, i32, i64, u8, boolean };

/// Bytes of one element.
constexpr int64_t size_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
    case Dtype::i64:
      return 8;
    case Dtype::f32:
    case Dtype::i32:
      return 4;
    case Dtype::f16:
    case Dtype::bf16:
      return 2;
    default:
      return 1;
  }
}

/// True for the types that can carry a gradient.
constexpr bool is_floating(Dtype dtype) { return dtype <= Dtype::f8e5m2fnuz; }

constexpr std::string_view name_of(Dtype dtype) {
  constexpr std::string_view names[] = {"f64",        "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "f8e4m3fnuz",
                                        "f8e5m2fnuz", "i8",  "i32", "i64",  "u8",     "bool"};
  return names[static_cast<int>(dtype)];
}

/// The type called `name`, as name_of() spells it.
constexpr std::optional<Dtype> parse_dtype(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Dtype::boolean); ++i)
    if (name_of(static_cast<Dtype>(i)) == name) return static_cast<Dtype>(i);
  return std::nullopt;
}

inline void describe(std::string& out, Dtype dtype) { out += name_of(dtype); }

/// Calls `f.template operator()<T>()` with the C++ type that stores `dtype`.
template <class F>
constexpr decltype(auto) visit(Dtype dtype, F&& f) {
  switch (dtype) {
    case Dtype::f64:
      return f.template operator()<double>();
    case Dtype::f32:
      return f.template operator()<float>();
    case Dtype::f16:
      return f.template operator()<f16>();
    case Dtype::bf16:
      return f.template operator()<bf16>();
    case Dtype::f8e4m3:
      return f.template operator()<f8e4m3>();
    case Dtype::f8e5m2:
      return f.template operator()<f8e5m2>();
    case Dtype::f8e4m3fnuz:
      return f.template operator()<f8e4m3fnuz>();
    case Dtype::f8e5m2fnuz:
      return f.template operator()<f8e5m2fnuz>();
    case Dtype::i8:
      return f.template operator()<int8_t>();
    case Dtype::i32:
      return f.template operator()<int32_t>();
    case Dtype::i64:
      return f.template operator()<int64_t>();
    case Dtype::u8:
      return f.template operator()<uint8_t>();
    case Dtype::boolean:
      return f.template operator()<bool>();
  }
  __builtin_unreachable();
}

/// The Dtype that stores C++ type T.
template <class T>
constexpr Dtype dtype_of() {
  constexpr int last = static_cast<int>(Dtype::boolean), found = [] {
    int i = 0;
    while (i <= last && !visit(static_cast<Dtype>(i), []<class U>() { return std::is_same_v<U, T>; })) ++i;
    return i;
  }();
  static_assert(found <= last, "tensors hold no numbers of this C++ type");
  return static_cast<Dtype>(found);
}

}  // namespace cinta
