// A number and its unit.
#include "tools/byte_size.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

#include "cinta/core/error.h"

namespace cinta::tools {

uint64_t byte_size(const char* option, const std::string& text) {
  constexpr std::pair<std::string_view, double> units[] = {
      {"", 1}, {"B", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"KIB", 0x1p10}, {"MIB", 0x1p20}, {"GIB", 0x1p30}};
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  std::ranges::transform(unit, unit.begin(), [](unsigned char c) { return std::toupper(c); });
  const auto* found = std::ranges::find(units, unit, &std::pair<std::string_view, double>::first);
  const bool right = error == std::errc() && number > 0 && found != std::end(units) &&
                     static_cast<double>(number) * found->second < 0x1p63;
  require(right, "options", Where(), option, " is a number of bytes such as 100MB or 2GiB, given '", text, "'");
  return number * static_cast<uint64_t>(found->second);
}

}  // namespace cinta::tools
