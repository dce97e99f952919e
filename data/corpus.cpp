// Files, licence comments and the split by hash.
#include "cinta/data/corpus.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <unordered_map>

#include "cinta/core/random.h"
#include "cinta/data/file.h"
#include "cinta/data/unicode.h"

namespace cinta::data {
namespace {

namespace fs = std::filesystem;

std::string_view skip_blank(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n\f\v");
  return text.substr(first == text.npos ? text.size() : first);
}

/// The distinct lines of a text as sorted hashes.
using Lines = std::vector<uint64_t>;
Lines lines_of(std::string_view text) {
  Lines out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = skip_blank(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find_last_not_of(" \t\r\f\v") + 1);
    if (line.empty()) continue;
    uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (char c : line) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    out.push_back(hash);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool mostly_shared(size_t shared, size_t a, size_t b) { return shared > 0 && 2 * shared >= a + b - shared; }

/// Whether a document shares most lines with any of `others`, by counting through the lines' places.
class DuplicateFinder {
 public:
  explicit DuplicateFinder(const std::vector<Document>& others) {
    for (const Document& document : others) {
      const Lines lines = lines_of(document.text);
      for (uint64_t line : lines) places_[line].push_back(static_cast<uint32_t>(sizes_.size()));
      sizes_.push_back(lines.size());
    }
  }
  bool operator()(const Document& document) const {
    const Lines lines = lines_of(document.text);
    std::vector<size_t> shared(sizes_.size());
    for (uint64_t line : lines)
      if (const auto found = places_.find(line); found != places_.end())
        for (uint32_t other : found->second) ++shared[other];
    for (size_t i = 0; i < sizes_.size(); ++i)
      if (mostly_shared(shared[i], lines.size(), sizes_[i])) return true;
    return false;
  }

 private:
  std::unordered_map<uint64_t, std::vector<uint32_t>> places_;
  std::vector<size_t> sizes_;
};

/// One document cut behind `end_mark`s into parts of about equal length; those that are blank are left out.
std::vector<Document> in_parts(const Document& document, char end_mark) {
  constexpr size_t most = 100;
  const std::string& text = document.text;
  std::vector<Document> parts;
  size_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t mark = text.find(end_mark, std::max(begin, text.size() * number / most));
    const size_t end = mark < text.size() ? mark + 1 : text.size();
    std::string part = text.substr(begin, end - begin);
    if (!skip_blank(part).empty()) parts.push_back({join(document.path, ":", number), std::move(part)});
    begin = end;
  }
  return parts;
}

std::vector<std::string> list_files(const std::string& root, Where where) {
  std::vector<std::string> out;
  std::error_code error;
  const auto check = [&](const std::string& folder) {
    require<FileError>(!error, "corpus", where, folder, ": cannot be listed: ", error.message());
  };
  fs::recursive_directory_iterator entry(root, error);
  check(root);
  while (entry != fs::recursive_directory_iterator()) {
    const std::string path = entry->path();
    if (entry->is_regular_file(error)) out.push_back(entry->path().lexically_relative(root).generic_string());
    entry.increment(error);  // into a folder, if it is one
    check(path);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::string_view without_licence(std::string_view text) {
  std::string_view rest = skip_blank(text);
  for (;;) {
    size_t end;
    if (rest.starts_with("//")) {
      end = rest.find('\n');
    } else if (rest.starts_with("/*")) {
      end = rest.find("*/", 2);
      if (end != rest.npos) end += 1;
    } else {
      break;
    }
    rest = skip_blank(rest.substr(end == rest.npos ? rest.size() : end + 1));
  }
  std::string comments(text.substr(0, text.size() - rest.size()));
  for (char& c : comments) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (std::string_view word : {"copyright", "license", "licence"})
    if (comments.find(word) != comments.npos) return rest;
  return text;
}

std::vector<Document> read_documents(const std::string& path, BadUtf8 on_bad, Where where,
                                     const Callback<void(const std::string&)>& say) {
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  std::vector<Document> out;
  std::string first_passed_over;
  int64_t passed_over = 0;
  for (const std::string& name : folder ? list_files(path, where) : std::vector<std::string>{""}) {
    const std::string file = folder ? path + (path.ends_with('/') ? "" : "/") + name : path;
    std::string text = read_file(file, maximum_file_bytes, where);
    if (text.find('\0') != text.npos) {
      require<FileError>(folder, "corpus", where, path, ": has NUL bytes: expected text in UTF-8, not UTF-16");
      if (passed_over++ == 0) first_passed_over = name;
      continue;
    }
    text = utf8_text(std::move(text), on_bad, file, where);
    const std::string_view kept = without_licence(text);
    if (skip_blank(kept).empty()) continue;
    out.push_back({folder ? name : fs::path(path).filename().string(), std::string(kept)});
  }
  if (passed_over > 0)
    say(join(path, ": files with NUL bytes, which are no text in UTF-8, are left out: ", passed_over, ", the first ",
             first_passed_over));
  require<FileError>(!out.empty(), "corpus", where, path, ": holds no text");
  return out;
}

bool is_near_duplicate(std::string_view a, std::string_view b) {
  const Lines first = lines_of(a), second = lines_of(b);
  Lines both;
  std::set_intersection(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(both));
  return mostly_shared(both.size(), first.size(), second.size());
}

DocumentSplit split_documents(std::vector<Document> documents, double fraction, uint64_t seed, Where where) {
  if (documents.size() == 1) {
    const Document whole = std::move(documents[0]);
    documents = in_parts(whole, '\n');
    if (documents.size() < 2) documents = in_parts({whole.path + ":1", whole.text}, ' ');
    require(documents.size() >= 2, "split_documents", where,
            "needs at least two documents, or one of several words, given ", whole.path);
  }
  require(!documents.empty(), "split_documents", where, "needs documents, given none");
  std::vector<uint32_t> draws;
  for (const Document& document : documents) draws.push_back(random_word(seed, stream_id(document.path), 0, 0));
  const auto lowest = static_cast<size_t>(std::min_element(draws.begin(), draws.end()) - draws.begin());
  DocumentSplit out;
  std::vector<Document> rest;
  for (size_t i = 0; i < documents.size(); ++i) {
    const bool held_out = i == lowest || draws[i] * 0x1p-32 < fraction;
    (held_out ? out.held_out : rest).push_back(std::move(documents[i]));
  }
  const DuplicateFinder duplicate(out.held_out);
  for (Document& document : rest) {
    if (duplicate(document))
      ++out.near_duplicates;
    else
      out.train.push_back(std::move(document));
  }
  require(!out.train.empty(), "split_documents", where, "no document is left for training: all ", rest.size(),
          " of them resemble one of the ", out.held_out.size(), " held out");
  return out;
}

}  // namespace cinta::data
