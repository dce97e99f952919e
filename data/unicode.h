// UTF-8 and the character classes that BERT's tokenizer speaks of. The tables are utf8proc's (Unicode 15).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "cinta/core/error.h"
#include "cinta/data/bad_utf8.h"

namespace cinta::data {

/// Takes the first code point off `text`, which must not be empty; -1, taking nothing, where the bytes are not UTF-8
/// (overlong forms, surrogates and values above U+10FFFF are not).
int32_t take_code_point(std::string_view& text);

void append_utf8(std::string& out, int32_t code_point);

/// The number of code points of valid UTF-8.
int64_t count_code_points(std::string_view text);

/// Throws FileError naming `name`, the offset of the first byte that is not UTF-8 and that byte.
void require_utf8(std::string_view text, const std::string& name, Where where = Where::current());

/// `text` as it is where it is UTF-8; else require_utf8()'s error, or the text with what is not replaced.
std::string utf8_text(std::string text, BadUtf8 on_bad, const std::string& name, Where where = Where::current());

/// Space, tab, LF, CR and category Zs.
bool is_whitespace(int32_t code_point);
/// Categories Cc and Cf, without tab, LF and CR.
bool is_control(int32_t code_point);
/// ASCII 33-47, 58-64, 91-96, 123-126 and categories P*; so `$` and `^` are, `£` and `×` are not.
bool is_punctuation(int32_t code_point);
/// The blocks of CJK ideographs in which each character is a word (not kana, not hangul).
bool is_cjk(int32_t code_point);

/// Canonical decomposition (NFD) without the non-spacing marks (category Mn): é -> e. Takes valid UTF-8.
std::string strip_accents(std::string_view text);
/// Lower case, character by character (Σ is σ also at the end of a word), or with `final_sigma` by Unicode's rule for
/// Σ, as Python has it: ς after a letter and not before one. Takes valid UTF-8.
std::string lower_case(std::string_view text, bool final_sigma = false);

}  // namespace cinta::data
