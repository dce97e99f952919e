// Prepared corpora come back from disk as they were made, and only for the text and options they were made of.
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "cinta/data/corpus_cache.h"
#include "cinta/data/mapped_file.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::data;
using namespace cinta::testing;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

void write_texts(const std::string& folder) {
  fs::create_directories(folder);
  for (int file = 0; file < 12; ++file) {
    std::string text;
    for (int line = 0; line < 30; ++line)
      text += "word" + std::to_string(file) + " then " + std::to_string(line * file) + ";\n";
    write_bytes(folder + "/" + std::to_string(file) + ".txt", text);
  }
}

struct Prepared {
  MaskedCorpus corpus;
  std::string said;
};

Prepared prepare(const std::string& folder, const std::string& cache, CorpusOptions options = {}) {
  options.vocab_size = 120;
  options.length = std::min<int64_t>(options.length, 16);
  options.cache_dir = cache;
  std::string said;
  const auto say = [&](const std::string& line) { said += line + "\n"; };
  MaskedCorpus corpus = prepare_corpus(folder, options, say);
  return {corpus, said};
}

void check_equal(const MaskedCorpus& a, const MaskedCorpus& b) {
  CHECK(a.tokenizer.vocabulary().text() == b.tokenizer.vocabulary().text());
  CHECK(a.tokenizer.encode("Word3 then 7") == b.tokenizer.encode("Word3 then 7"));
  for (const auto part : {&MaskedCorpus::train, &MaskedCorpus::held_out}) {
    CHECK((a.*part).count == (b.*part).count);
    CHECK((a.*part).length == (b.*part).length);
    for (const auto array : {&Sequences::ids, &Sequences::lengths, &Sequences::documents})
      CHECK(std::ranges::equal(a.*part.*array, b.*part.*array));
  }
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> out;
  if (fs::exists(folder))
    for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path());
  return out;
}

}  // namespace

TEST_CASE("a corpus is tokenised once", "[data]") {
  const Scratch scratch;
  const std::string text = scratch / "text", cache = scratch / "a/cache";
  write_texts(text);
  const Prepared plain = prepare(text, ""), first = prepare(text, cache);
  CHECK_THAT(first.said, Contains("tokens kept in " + cache));
  REQUIRE(files_in(cache).size() == 1);
  const Prepared second = prepare(text, cache);
  CHECK_THAT(second.said, Contains("tokens from " + cache));
  check_equal(plain.corpus, first.corpus);
  check_equal(plain.corpus, second.corpus);

  fs::remove_all(cache);  // what is mapped stays
  check_equal(plain.corpus, second.corpus);
}

TEST_CASE("another text or other options are another corpus", "[data]") {
  const Scratch scratch;
  const std::string text = scratch / "text", cache = scratch / "cache";
  write_texts(text);
  prepare(text, cache);
  CHECK_THAT(prepare(text, cache, {.length = 12}).said, Contains("tokens kept"));
  CHECK_THAT(prepare(text, cache, {.seed = 5}).said, Contains("tokens kept"));
  write_bytes(text + "/3.txt", read_bytes(text + "/3.txt") + "!");
  CHECK_THAT(prepare(text, cache).said, Contains("tokens kept"));
  fs::rename(text + "/4.txt", text + "/40.txt");
  CHECK_THAT(prepare(text, cache).said, Contains("tokens kept"));
  CHECK(files_in(cache).size() == 5);
}

TEST_CASE("a tokenizer that cuts otherwise is another corpus", "[data]") {
  const DocumentSplit split{{{"a", "text"}}, {{"b", "more"}}};
  std::set<std::string> origins;
  for (const bool lower : {false, true})
    for (const bool strip : {false, true})
      for (const bool sigma : {false, true}) origins.insert(origin_of(split, {}, {lower, strip, sigma}));
  CHECK(origins.size() == 8);
}

TEST_CASE("a damaged cache is named and made anew", "[data]") {
  const Scratch scratch;
  const std::string text = scratch / "text", cache = scratch / "cache";
  write_texts(text);
  const MaskedCorpus wanted = prepare(text, cache).corpus;
  const std::string path = files_in(cache).at(0), whole = read_bytes(path);
  const auto refused = [&](const std::string& bytes, const char* message) {
    write_bytes(path, bytes);
    const Prepared found = prepare(text, cache);
    CHECK_THAT(found.said, Contains(message) && Contains("made anew"));
    CHECK_THAT(found.said, Contains(path));
    check_equal(found.corpus, wanted);
    CHECK(read_bytes(path) == whole);
  };
  refused("", "no regular file with something in it");
  for (size_t length : {size_t{5}, size_t{100}, whole.size() / 2, whole.size() - 1})
    refused(whole.substr(0, length), path.c_str());
  std::string flipped = whole;
  flipped[whole.size() - 2] ^= 1;
  refused(flipped, "found the checksum");
  flipped = whole;
  flipped[whole.find("\n##") + 4] ^= 1;  // in the vocabulary
  refused(flipped, "vocabulary: found the checksum");
  flipped = whole;
  flipped[whole.find("bytes, ") - 2] ^= 1;  // in the words of its origin
  refused(flipped, "expected 'format 1; text ");
}

TEST_CASE("a cache that cannot be written costs no run", "[data]") {
  const Scratch scratch;
  const std::string text = scratch / "text";
  write_texts(text);
  write_bytes(scratch / "file", "in the way");
  const Prepared found = prepare(text, scratch / "file/cache");
  CHECK_THAT(found.said, Contains("cannot be made") && Contains("tokens are not kept"));
  CHECK(found.corpus.train.count > 0);
}

TEST_CASE("mapped files", "[data]") {
  const Scratch scratch;
  write_bytes(scratch / "file", "abc");
  const auto file = MappedFile::open(scratch / "file");
  REQUIRE(file->bytes().size() == 3);
  CHECK(std::to_integer<char>(file->bytes()[2]) == 'c');
  CHECK_THAT(error_of<FileError>([&] { MappedFile::open(scratch / "none"); }), Contains("No such file"));
  CHECK_THAT(error_of<FileError>([&] { MappedFile::open(scratch.path()); }), Contains("no regular file"));
}
