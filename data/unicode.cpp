// Thin functions over utf8proc, with shortcuts for ASCII.
#include "cinta/data/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

namespace cinta::data {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// Unicode's Case_Ignorable: what stands between letters without parting them, such as marks and apostrophes.
bool is_case_ignorable(int32_t c) {
  constexpr int32_t word_middles[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                      0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return std::ranges::find(word_middles, c) != std::end(word_middles);
  }
}

/// Unicode's Cased, of what is not Case_Ignorable.
bool is_cased(int32_t c) {
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
      return true;
    default:  // ordinal indicators, Roman numerals, letters in circles and squares
      return c == 0xAA || c == 0xBA || (c >= 0x2160 && c <= 0x217F) || (c >= 0x24B6 && c <= 0x24E9) ||
             (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
  }
}

/// Whether `text` begins with a letter, marks and apostrophes before it passed over.
bool begins_cased(std::string_view text) {
  while (!text.empty())
    if (const int32_t c = take_code_point(text); !is_case_ignorable(c)) return is_cased(c);
  return false;
}

}  // namespace

int32_t take_code_point(std::string_view& text) {
  int32_t code_point = static_cast<unsigned char>(text[0]);
  utf8proc_ssize_t length = 1;
  if (code_point >= 0x80)
    length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                              static_cast<utf8proc_ssize_t>(text.size()), &code_point);
  if (length <= 0) return -1;
  text.remove_prefix(static_cast<size_t>(length));
  return code_point;
}

void append_utf8(std::string& out, int32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t length = utf8proc_encode_char(code_point, bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
}

int64_t count_code_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

void require_utf8(std::string_view text, const std::string& name, Where where) {
  std::string_view rest = text;
  while (!rest.empty()) {
    if (take_code_point(rest) >= 0) continue;
    const int byte = static_cast<unsigned char>(rest[0]);
    constexpr char digits[] = "0123456789abcdef";
    const char shown[] = {'0', 'x', digits[byte / 16], digits[byte % 16], 0};
    throw FileError(located("utf8",
                            join(name, ": byte ", text.size() - rest.size(), ": found ", shown,
                                 ", which is not UTF-8 here; convert the file to UTF-8"),
                            where));
  }
}

std::string utf8_text(std::string text, BadUtf8 on_bad, const std::string& name, Where where) {
  if (on_bad == BadUtf8::error) {
    require_utf8(text, name, where);
    return text;
  }
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view here = rest;
    if (take_code_point(rest) >= 0) {
      out += here.substr(0, here.size() - rest.size());
    } else {
      out += "\ufffd";
      rest.remove_prefix(1);
    }
  }
  return out;
}

bool is_whitespace(int32_t c) {
  if (c < 0x80) return c == ' ' || c == '\t' || c == '\n' || c == '\r';
  return utf8proc_category(c) == UTF8PROC_CATEGORY_ZS;
}

bool is_control(int32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  if (c < 0x80) return c < 0x20 || c == 0x7F;
  const utf8proc_category_t category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF;
}

bool is_punctuation(int32_t c) {
  if (c < 0x80) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  const utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool is_cjk(int32_t c) {
  struct Range {
    int32_t first, last;
  };
  constexpr Range blocks[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                              {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  if (c < 0x3400) return false;
  return std::any_of(std::begin(blocks), std::end(blocks), [c](Range r) { return c >= r.first && c <= r.last; });
}

std::string strip_accents(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto length = static_cast<utf8proc_ssize_t>(text.size());
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
  const utf8proc_ssize_t count = utf8proc_decompose(bytes, length, nullptr, 0, options);
  require<InternalError>(count >= 0, "strip_accents", Where::current(), "text must be UTF-8");
  std::u32string decomposed(static_cast<size_t>(count), 0);
  utf8proc_decompose(bytes, length, reinterpret_cast<utf8proc_int32_t*>(decomposed.data()), count, options);
  std::string out;
  for (char32_t c : decomposed)
    if (utf8proc_category(static_cast<int32_t>(c)) != UTF8PROC_CATEGORY_MN) append_utf8(out, static_cast<int32_t>(c));
  return out;
}

std::string lower_case(std::string_view text, bool final_sigma) {
  constexpr int32_t capital_sigma = 0x3A3;
  std::string out;
  out.reserve(text.size());
  bool after_letter = false;
  while (!text.empty()) {
    const int32_t c = take_code_point(text);
    require<InternalError>(c >= 0, "lower_case", Where::current(), "text must be UTF-8");
    if (final_sigma && c == capital_sigma && after_letter && !begins_cased(text))
      out += "ς";
    else if (c < 0x80)
      out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    else if (c == 0x130)  // the one character whose lower case is two: i and a dot above
      out += "i\xcc\x87";
    else
      append_utf8(out, utf8proc_tolower(c));
    if (final_sigma && !is_case_ignorable(c)) after_letter = is_cased(c);
  }
  return out;
}

}  // namespace cinta::data
