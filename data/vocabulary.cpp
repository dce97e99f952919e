// vocab.txt in and out, with everything checked that a later lookup relies on.
#include "cinta/data/vocabulary.h"

#include <algorithm>
#include <unordered_map>

#include "cinta/data/atomic_file.h"
#include "cinta/data/file.h"
#include "cinta/data/unicode.h"

namespace cinta::data {

struct Vocabulary::Index {
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids;
};

Vocabulary::Vocabulary(std::vector<std::string> tokens, const std::string& name, Where where)
    : tokens_(std::move(tokens)) {
  const auto index = std::make_shared<Index>();
  index_ = index;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string line = join(name, ": line ", i + 1);
    require<FileError>(!tokens_[i].empty(), "vocabulary", where, line, ": found nothing, expected a token");
    require_utf8(tokens_[i], line, where);
    const auto [first, added] = index->ids.emplace(tokens_[i], static_cast<int32_t>(i));
    require<FileError>(added, "vocabulary", where, line, ": token \"", tokens_[i], "\" stands already in line ",
                       first->second + 1);
  }
  require<FileError>(find("[UNK]") >= 0, "vocabulary", where, name, ": has no [UNK] token among its ", tokens_.size(),
                     "; is it a WordPiece vocab.txt?");
}

Vocabulary Vocabulary::load(const std::string& path, Where where) {
  return parse(read_file(path, maximum_file_bytes, where), path, where);
}

Vocabulary Vocabulary::parse(std::string_view rest, const std::string& name, Where where) {
  std::vector<std::string> tokens;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    const size_t last = line.find_last_not_of(" \t\r");
    tokens.emplace_back(line.substr(0, last == line.npos ? 0 : last + 1));
  }
  while (!tokens.empty() && tokens.back().empty()) tokens.pop_back();
  return Vocabulary(std::move(tokens), name, where);
}

std::string Vocabulary::text() const {
  std::string text;
  for (const std::string& token : tokens_) text += token + '\n';
  return text;
}

void Vocabulary::save(const std::string& path, Where where) const {
  const std::string text = this->text();
  AtomicFile file(path, where);
  file.write_text(text);
  file.commit(where);
}

const std::string& Vocabulary::token(int64_t id, Where where) const {
  require(id >= 0 && id < size(), "vocabulary", where, "token number ", id, " outside [0, ", size(), ")");
  return tokens_[static_cast<size_t>(id)];
}

int32_t Vocabulary::find(std::string_view token) const {
  const auto found = index_->ids.find(token);
  return found == index_->ids.end() ? -1 : found->second;
}

int32_t Vocabulary::id(std::string_view token, Where where) const {
  const int32_t found = find(token);
  require(found >= 0, "vocabulary", where, "has no token \"", token, "\"");
  return found;
}

bool Vocabulary::is_special(int64_t id) const {
  return std::any_of(std::begin(specials), std::end(specials), [&](std::string_view s) { return find(s) == id; });
}

}  // namespace cinta::data
