// Numbers and text as people and markup read them.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace cinta::train {

/// The text of one number by printf's `format`.
template <class Number>
std::string formatted(const char* format, Number number) {
  char text[64];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

/// 24100 is 24.1k.
std::string short_count(double count);
/// 12345 is 12,345.
std::string whole_count(int64_t count);
/// 1536 is 1.5 KiB.
std::string bytes_text(int64_t bytes);
/// 75 is 01:15, 3675 is 1:01:15.
std::string clock_time(double seconds);
/// Seconds since 1970 as "2026-11-22 17:30:00".
std::string local_time(double seconds);

/// "bert.encoder.layer.0" of "bert.encoder.layer.0.attention": up to the first number, or two names.
std::string layer_of(const std::string& path);

/// `text` as character data or an attribute of XML and HTML. What XML forbids becomes a space, what is not UTF-8 a
/// replacement character.
std::string escaped(std::string_view text);

}  // namespace cinta::train
