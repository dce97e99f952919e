// Units, separators and escapes.
#include "cinta/train/readable.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "cinta/core/error.h"
#include "cinta/data/unicode.h"

namespace cinta::train {

std::string short_count(double count) {
  for (const char* unit : {"", "k", "M", "G"}) {
    if (count < 999.5) return formatted("%.3g", count) + unit;
    count /= 1000;
  }
  return formatted("%.3gT", count);
}

std::string whole_count(int64_t count) {
  std::string out = std::to_string(count);
  const size_t sign = count < 0 ? 1 : 0;
  for (size_t at = out.size(); at > 3 + sign;) out.insert(at -= 3, ",");
  return out;
}

std::string bytes_text(int64_t bytes) {
  if (bytes < 1 << 10) return join(bytes, " B");
  for (const auto& [shift, unit] : {std::pair{10, " KiB"}, {20, " MiB"}})
    if (bytes >> shift < 1 << 10) return join(static_cast<double>(bytes * 10 >> shift) / 10, unit);
  return join(static_cast<double>(bytes * 10 >> 30) / 10, " GiB");
}

std::string clock_time(double seconds) {
  const auto total = static_cast<long long>(std::llround(std::min(seconds, 1e9)));
  const std::string rest = formatted("%02lld:", total / 60 % 60) + formatted("%02lld", total % 60);
  return total < 3600 ? rest : formatted("%lld:", total / 3600) + rest;
}

std::string local_time(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char text[32] = "";
  if (::localtime_r(&whole, &parts)) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

std::string layer_of(const std::string& path) {
  const auto name_end = [&](size_t begin) { return std::min(path.find('.', begin), path.size()); };
  const size_t number = path.find_first_of("0123456789"), first = name_end(0);
  if (number != path.npos) return path.substr(0, name_end(number));
  return path.substr(0, first == path.size() ? first : name_end(first + 1));
}

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const int32_t code = data::take_code_point(text);
    if (code < 0) {
      text.remove_prefix(1);
      data::append_utf8(out, 0xFFFD);
    } else if (code < 0x20 || code == 0xFFFE || code == 0xFFFF) {
      out += ' ';
    } else if (code == '&') {
      out += "&amp;";
    } else if (code == '<') {
      out += "&lt;";
    } else if (code == '>') {
      out += "&gt;";
    } else if (code == '"') {
      out += "&quot;";
    } else {
      data::append_utf8(out, code);
    }
  }
  return out;
}

}  // namespace cinta::train
