// The steps of the tokenizer in order: special tokens, clean-up, CJK, case and accents, punctuation, pieces.
#include "cinta/data/wordpiece.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "cinta/data/unicode.h"

namespace cinta::data {
namespace {

/// Drops U+0000, U+FFFD and controls, turns white space into blanks and puts blanks around CJK ideographs.
std::string clean(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  while (!text.empty()) {
    const int32_t c = take_code_point(text);
    if (c == 0 || c == 0xFFFD || is_control(c)) continue;
    if (is_whitespace(c) || c == 0x2028 || c == 0x2029) {  // the line and paragraph separators part words too
      out += ' ';
    } else if (is_cjk(c)) {
      out += ' ';
      append_utf8(out, c);
      out += ' ';
    } else {
      append_utf8(out, c);
    }
  }
  return out;
}

/// Cuts at blanks and isolates each punctuation character.
void cut(std::string_view text, std::vector<std::string>& words) {
  bool open = false;  // whether the last word may grow
  while (!text.empty()) {
    const std::string_view here = text;
    const int32_t c = take_code_point(text);
    const std::string_view bytes = here.substr(0, here.size() - text.size());
    if (c == ' ') {
      open = false;
    } else if (is_punctuation(c)) {
      words.emplace_back(bytes);
      open = false;
    } else {
      if (!open) words.emplace_back();
      words.back() += bytes;
      open = true;
    }
  }
}

/// The first special token written in `text` from `begin` on: its place and itself; npos when there is none.
std::pair<size_t, std::string_view> next_special(std::string_view text, size_t begin) {
  for (size_t at = text.find('[', begin); at != text.npos; at = text.find('[', at + 1))
    for (std::string_view special : Vocabulary::specials)
      if (text.substr(at).starts_with(special)) return {at, special};
  return {text.npos, {}};
}

/// The length of a beginning of `text` whose words are those that they are in the whole: some 64 kB, up to an ASCII
/// blank or punctuation character, before which every word ends. So no text's words are all held at once. Whether a Σ
/// is final can depend on what follows a full stop, but on nothing behind a blank.
size_t stretch_of(std::string_view text, bool final_sigma) {
  for (size_t at = size_t{1} << 16; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c < 0x80 && (is_whitespace(c) || (!final_sigma && is_punctuation(c)))) return at;
  }
  return text.size();
}

/// How many tokens of a text are needed for a frame of `max_length`; 0: all.
size_t needed(int64_t max_length, int64_t frame) {
  return max_length == 0 ? std::string_view::npos : static_cast<size_t>(max_length - frame);
}

}  // namespace

std::vector<std::string> basic_words(std::string_view text, TokenizerOptions options, const std::string& name,
                                     Where where) {
  require_utf8(text, name, where);
  std::string cleaned = clean(text);
  if (options.strip_accents) cleaned = strip_accents(cleaned);
  if (options.lower_case) cleaned = lower_case(cleaned, options.final_sigma);
  std::vector<std::string> words;
  cut(cleaned, words);
  return words;
}

WordPiece::WordPiece(Vocabulary vocabulary, TokenizerOptions options)
    : vocabulary_(std::move(vocabulary)), options_(options), unknown_(vocabulary_.id("[UNK]")) {}

std::vector<int32_t> WordPiece::pieces(const std::string& word) const {
  if (count_code_points(word) > longest_word) return {unknown_};
  std::vector<int32_t> out;
  std::string candidate;
  for (size_t begin = 0; begin < word.size();) {
    size_t end = word.size();
    int32_t found = -1;
    for (; end > begin; --end) {
      if (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) continue;  // inside a character
      candidate.assign(begin > 0 ? "##" : "").append(word, begin, end - begin);
      if ((found = vocabulary_.find(candidate)) >= 0) break;
    }
    if (found < 0) return {unknown_};
    out.push_back(found);
    begin = end;
  }
  return out;
}

std::vector<int32_t> WordPiece::encode(std::string_view text, const std::string& name, Where where) const {
  return encode_some(text, std::string_view::npos, name, where);
}

std::vector<int32_t> WordPiece::encode_some(std::string_view text, size_t most, const std::string& name,
                                            Where where) const {
  require_utf8(text, name, where);
  std::vector<int32_t> out;
  std::unordered_map<std::string, std::vector<int32_t>> seen;  // words repeat, so each is matched once
  for (size_t begin = 0; begin <= text.size() && out.size() < most;) {
    const auto [at, special] = next_special(text, begin);
    std::string_view rest = text.substr(begin, at - begin);
    while (!rest.empty() && out.size() < most) {
      const std::string_view stretch = rest.substr(0, stretch_of(rest, options_.final_sigma));
      rest.remove_prefix(stretch.size());
      for (std::string& word : basic_words(stretch, options_, name, where)) {
        const auto [entry, added] = seen.try_emplace(std::move(word));
        if (added) entry->second = pieces(entry->first);
        out.insert(out.end(), entry->second.begin(), entry->second.end());
      }
    }
    if (at == text.npos) break;
    const int32_t id = vocabulary_.find(special);
    out.push_back(id >= 0 ? id : unknown_);
    begin = at + special.size();
  }
  return out;
}

Encoding WordPiece::encode_framed(std::string_view text, int64_t max_length, Where where) const {
  require(max_length == 0 || max_length >= 2, "wordpiece", where, "no room for [CLS] and [SEP] in ", max_length,
          " tokens");
  Encoding out{encode_some(text, needed(max_length, 2), "text", where), {}};
  if (max_length > 0) out.ids.resize(std::min(out.ids.size(), static_cast<size_t>(max_length - 2)));
  out.ids.insert(out.ids.begin(), vocabulary_.id("[CLS]", where));
  out.ids.push_back(vocabulary_.id("[SEP]", where));
  out.types.assign(out.ids.size(), 0);
  return out;
}

Encoding WordPiece::encode_pair(std::string_view first, std::string_view second, int64_t max_length,
                                Where where) const {
  require(max_length == 0 || max_length >= 3, "wordpiece", where, "no room for [CLS] and two [SEP] in ", max_length,
          " tokens");
  const size_t room = needed(max_length, 3);
  const size_t most = room % 2 == 0 ? room : std::string_view::npos;  // an odd token goes by which of both is longer
  std::vector<int32_t> a = encode_some(first, most, "first text", where),
                       b = encode_some(second, most, "second text", where);
  if (a.size() + b.size() > room) {
    auto [shorter, longer] = a.size() > b.size() ? std::tie(b, a) : std::tie(a, b);
    shorter.resize(std::min(shorter.size(), room / 2));
    longer.resize(room - shorter.size());
  }
  Encoding out;
  out.ids.push_back(vocabulary_.id("[CLS]", where));
  out.ids.insert(out.ids.end(), a.begin(), a.end());
  out.ids.push_back(vocabulary_.id("[SEP]", where));
  out.types.assign(out.ids.size(), 0);
  out.ids.insert(out.ids.end(), b.begin(), b.end());
  out.ids.push_back(vocabulary_.id("[SEP]", where));
  out.types.resize(out.ids.size(), 1);
  return out;
}

std::string WordPiece::decode(std::span<const int32_t> ids, Where where) const {
  std::string out;
  for (int32_t id : ids) {
    std::string_view token = vocabulary_.token(id, where);
    if (token == "[PAD]" || token == "[CLS]" || token == "[SEP]") continue;
    if (token.starts_with("##") && token.size() > 2)
      token.remove_prefix(2);
    else if (!out.empty())
      out += ' ';
    out += token;
  }
  return out;
}

}  // namespace cinta::data
