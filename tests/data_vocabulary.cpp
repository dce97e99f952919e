// vocab.txt, good and bad, and learning one.
#include <catch2/catch.hpp>

#include "cinta/data/vocabulary.h"
#include "cinta/data/wordpiece_trainer.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::data;
using namespace cinta::testing;
using Catch::Matchers::Contains;

namespace {

std::vector<std::string> tokens_of(const Vocabulary& vocabulary) {
  std::vector<std::string> out;
  for (int64_t id = 0; id < vocabulary.size(); ++id) out.push_back(vocabulary.token(id));
  return out;
}

}  // namespace

TEST_CASE("A vocabulary file", "[data]") {
  const Scratch folder;
  write_bytes(folder / "v.txt", "[UNK]\r\na \nb\n\n\n");
  const Vocabulary vocabulary = Vocabulary::load(folder / "v.txt");
  CHECK(tokens_of(vocabulary) == std::vector<std::string>{"[UNK]", "a", "b"});
  CHECK(vocabulary.find("b") == 2);
  CHECK(vocabulary.find("c") == -1);
  CHECK(vocabulary.is_special(0));
  CHECK_FALSE(vocabulary.is_special(1));
  CHECK_THAT(error_of<ValueError>([&] { vocabulary.id("[CLS]"); }), Contains("has no token \"[CLS]\""));
  CHECK_THAT(error_of<ValueError>([&] { vocabulary.token(3); }), Contains("token number 3 outside [0, 3)"));
  vocabulary.save(folder / "again.txt");
  CHECK(read_bytes(folder / "again.txt") == "[UNK]\na\nb\n");
}

TEST_CASE("Bad vocabularies are refused with their line", "[data]") {
  const Scratch folder;
  struct Case {
    std::string text, message;
  };
  const std::vector<Case> cases = {
      {"", "v.txt: has no [UNK] token among its 0"},
      {"a\nb\n", "v.txt: has no [UNK] token among its 2; is it a WordPiece vocab.txt?"},
      {"[UNK]\na\nb\na\n", "v.txt: line 4: token \"a\" stands already in line 2"},
      {"[UNK]\n\na\n", "v.txt: line 2: found nothing, expected a token"},
      {"[UNK]\na\xff\n", "v.txt: line 2: byte 1: found 0xff, which is not UTF-8"},
  };
  for (const Case& c : cases) {
    write_bytes(folder / "v.txt", c.text);
    CHECK_THAT(error_of<FileError>([&] { Vocabulary::load(folder / "v.txt"); }), Contains(c.message));
  }
  CHECK_THAT(error_of<FileError>([&] { Vocabulary::load(folder / "no.txt"); }), Contains("No such file"));
}

TEST_CASE("Merges go by frequency, then by age", "[data]") {
  // l-o occurs 7+2 times, o-w the same: the older pair wins, then lo-w; then e-r in "lower" and "er" (not started: ##).
  const std::vector<WordCount> counts = {{"low", 7}, {"lower", 2}, {"er", 1}, {"once", 1}};
  const std::vector<std::string> wanted = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "c",    "e",   "l",
                                           "n",     "o",     "r",     "w",     "##c",    "##e",  "##n", "##o",
                                           "##r",   "##w",   "lo",    "low",   "##er",   "lower"};
  CHECK(tokens_of(learn_vocabulary(counts, 100)) == wanted);  // and stops where no pair occurs twice
  CHECK(tokens_of(learn_vocabulary(counts, 19)) == std::vector<std::string>(wanted.begin(), wanted.begin() + 19));
  CHECK_THAT(error_of<ValueError>([&] { learn_vocabulary(counts, 17); }),
             Contains("a vocabulary of 17 cannot hold the 18 special tokens and characters"));
}

TEST_CASE("Repeated characters merge without counting places twice", "[data]") {
  const std::vector<std::string> tokens = tokens_of(learn_vocabulary({{"aaaaa", 3}}, 100));
  // a ##a ##a ##a ##a: ##a-##a at three places beats a-##a at one, and leaves a ##aa ##aa
  CHECK(std::vector<std::string>(tokens.begin() + 5, tokens.end()) ==
        std::vector<std::string>{"a", "##a", "##aa", "aaa", "aaaaa"});
}

TEST_CASE("A learnt vocabulary spells the text it was learnt from", "[data]") {
  WordCounter words({.lower_case = false, .strip_accents = false});
  const std::string text = "The cat sat on the mat; the bat sat on the cat. Ünïcode ünïcode, 你好 你好.";
  words.add(text);
  const std::vector<WordCount> counts = words.counts();
  const auto count_of = [&](const char* word) { return std::ranges::find(counts, word, &WordCount::word)->count; };
  CHECK(count_of("the") == 3);
  CHECK(count_of("你") == 2);
  const Vocabulary vocabulary = learn_vocabulary(counts, 60);
  const WordPiece tokenizer(vocabulary, {.lower_case = false, .strip_accents = false});
  std::string back;
  for (char c : tokenizer.decode(tokenizer.encode(text))) back += c == ' ' ? "" : std::string(1, c);
  std::string wanted;
  for (char c : text) wanted += c == ' ' ? "" : std::string(1, c);
  CHECK(back == wanted);
}

TEST_CASE("a word that the tokenizer never takes apart teaches no pieces", "[data]") {
  const auto longest = static_cast<size_t>(longest_word);
  CHECK(learn_vocabulary({{std::string(longest, 'a'), 9}}, 100).size() > 7);
  CHECK(learn_vocabulary({{std::string(longest + 1, 'a'), 9}}, 100).size() == 6);  // the specials and the character
}
