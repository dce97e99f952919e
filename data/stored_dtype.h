// The types that numbers have in files: those of core, and whole numbers of other widths, which are listed and carried
// along but not computed with. A storage type in core would cost every table of kernels four more columns; weights
// never have these.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "cinta/core/dtype.h"

namespace cinta::data {

/// What no kernel computes with.
enum class CarriedDtype : uint8_t { i16, u16, u32, u64 };

class StoredDtype {
 public:
  constexpr StoredDtype(Dtype own) : own_(own) {}
  constexpr StoredDtype(CarriedDtype carried) : carried_(carried) {}
  /// Core's type; nothing for one that is only carried.
  constexpr std::optional<Dtype> own() const { return own_; }
  /// Calls `f.template operator()<T>()` with the C++ type that stores it.
  template <class F>
  decltype(auto) visit(F&& f) const {
    if (own_) return cinta::visit(*own_, f);
    switch (carried_) {
      case CarriedDtype::i16:
        return f.template operator()<int16_t>();
      case CarriedDtype::u16:
        return f.template operator()<uint16_t>();
      case CarriedDtype::u32:
        return f.template operator()<uint32_t>();
      case CarriedDtype::u64:
        return f.template operator()<uint64_t>();
    }
    __builtin_unreachable();
  }
  constexpr bool operator==(const StoredDtype&) const = default;

 private:
  friend constexpr std::string_view name_of(StoredDtype dtype);
  std::optional<Dtype> own_;
  CarriedDtype carried_ = {};
};

inline int64_t size_of(StoredDtype dtype) {
  return dtype.visit([]<class T>() { return static_cast<int64_t>(sizeof(T)); });
}

constexpr bool is_floating(StoredDtype dtype) { return dtype.own() && is_floating(*dtype.own()); }

constexpr std::string_view name_of(StoredDtype dtype) {
  constexpr std::string_view carried[] = {"i16", "u16", "u32", "u64"};
  return dtype.own_ ? name_of(*dtype.own_) : carried[static_cast<int>(dtype.carried_)];
}

inline void describe(std::string& out, StoredDtype dtype) { out += name_of(dtype); }

}  // namespace cinta::data
