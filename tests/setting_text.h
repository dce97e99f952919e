// What `cinta config --json` shows of an option, as text.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace cinta::testing {

/// The value of `shown`, {"value": .., "from": ..}: a text as it is, a number or truth as JSON writes it.
inline std::string setting_text(const nlohmann::json& shown) {
  const nlohmann::json& value = shown.at("value");
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace cinta::testing
