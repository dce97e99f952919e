// Text for language models: the files of a folder, split into training and held-out documents.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cinta/core/callback.h"
#include "cinta/core/error.h"
#include "cinta/data/bad_utf8.h"

namespace cinta::data {

struct Document {
  std::string path;  ///< relative to the folder
  std::string text;
};

/// Every text file under a folder (or the one file that `path` names), sorted by path, without its leading licence
/// comment. Empty files and files with a NUL byte, which are not text, are left out.
/// Throws FileError: missing, no permission, no text file at all, a file that is not UTF-8 (unless `on_bad` has
/// such bytes replaced).
/// `say` is told how many files of a folder are left out for NUL bytes, and which is the first.
std::vector<Document> read_documents(
    const std::string& path, BadUtf8 on_bad = BadUtf8::error, Where where = Where::current(),
    const Callback<void(const std::string&)>& say = [](const std::string&) {});

/// The text without the comments that stand before its first line of code (`//` and `/* */`), when they speak of a
/// copyright or a licence.
std::string_view without_licence(std::string_view text);

struct DocumentSplit {
  std::vector<Document> train, held_out;
  int64_t near_duplicates = 0;  ///< training documents dropped because a held-out one is almost the same
};

/// Holds out a document when the seeded hash of its path says so (on average `fraction` of them; at least one), then
/// drops from training whatever `is_near_duplicate` of a held-out document. A single document is first cut at ends of
/// lines into 100 parts, or where fewer than two of those hold text, at blanks; parts without text are left out.
/// Throws ValueError when there are not two documents that differ.
DocumentSplit split_documents(std::vector<Document> documents, double fraction, uint64_t seed,
                              Where where = Where::current());

/// Whether two documents share at least half of their distinct lines (Jaccard similarity of the sets of lines; blanks
/// at both ends of a line do not count).
bool is_near_duplicate(std::string_view a, std::string_view b);

}  // namespace cinta::data
