// BERT's tokenizer: goldens of Python's tokenizers, the rules one by one, and bad input.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cinta/data/unicode.h"
#include "cinta/data/wordpiece.h"
#include "cinta/data/wordpiece_files.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::data;
using namespace cinta::testing;
using Catch::Matchers::Contains;

namespace {

std::string words(std::string_view text, bool lower = true) {
  std::string out;
  for (const std::string& word : basic_words(text, {lower, lower})) out += (out.empty() ? "" : "|") + word;
  return out;
}

WordPiece small() {
  return WordPiece(Vocabulary(
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "a", "b", "##b", "c", "é", "##é"}));
}

using Ids = std::vector<int32_t>;

}  // namespace

TEST_CASE("WordPiece equals Python's BertTokenizer", "[data]") {
  const auto golden = nlohmann::json::parse(read_bytes(CINTA_SOURCE_DIR "/tests/golden/wordpiece.json"));
  const Vocabulary vocabulary(golden["vocabulary"].get<std::vector<std::string>>());
  const WordPiece lower(vocabulary), cased(vocabulary, {.lower_case = false, .strip_accents = false});
  CHECK(golden["texts"].size() > 80);
  for (const auto& c : golden["texts"]) {
    INFO(c.dump());
    CHECK((c["lower"] ? lower : cased).encode(c["text"].get<std::string>()) == c["ids"].get<Ids>());
  }
  for (const auto& c : golden["pairs"]) {
    INFO(c.dump());
    const Encoding pair = lower.encode_pair(c["first"].get<std::string>(), c["second"].get<std::string>(), c["length"]);
    CHECK(pair.ids == c["ids"].get<Ids>());
    CHECK(pair.types == c["types"].get<Ids>());
  }
}

TEST_CASE("Pairs are cut as Python's tokenizers cut them, whichever is longer", "[data]") {
  const auto golden = nlohmann::json::parse(read_bytes(CINTA_SOURCE_DIR "/tests/golden/wordpiece.json"));
  const WordPiece tokenizer = small();
  auto text = [](size_t tokens) {
    std::string out;
    for (size_t i = 0; i < tokens; ++i) out += "a ";
    return out;
  };
  REQUIRE(golden["rooms"].size() == 5);
  for (const auto& c : golden["rooms"]) {
    const auto room = c["room"].get<size_t>();
    const auto& rows = c["kept_of_first"];
    for (size_t first = 0; first < rows.size(); ++first)
      for (size_t second = 0; second < rows[first].size(); ++second) {
        INFO(room << ": " << first << " + " << second);
        const Encoding pair = tokenizer.encode_pair(text(first), text(second), static_cast<int64_t>(room) + 3);
        const auto kept = rows[first][second].get<size_t>();
        CHECK(std::ranges::count(pair.types, 0) == static_cast<int64_t>(kept + 2));
        CHECK(std::ranges::count(pair.types, 1) == static_cast<int64_t>(std::min(second, room - kept) + 1));
      }
  }
  // Far too long both, and taken in stretches: the longer still keeps the odd token.
  const std::string longer = text(70'000), shorter = text(69'999);
  CHECK(std::ranges::count(tokenizer.encode_pair(longer, shorter, 12).types, 0) == 5 + 2);
  CHECK(std::ranges::count(tokenizer.encode_pair(shorter, longer, 12).types, 0) == 4 + 2);
}

TEST_CASE("A final sigma is lowered as Python lowers it where that is asked for", "[data]") {
  const auto golden = nlohmann::json::parse(read_bytes(CINTA_SOURCE_DIR "/tests/golden/wordpiece.json"));
  constexpr TokenizerOptions python{.final_sigma = true};
  REQUIRE(golden["final_sigma"].size() > 10);
  for (const auto& c : golden["final_sigma"]) {
    INFO(c.dump());
    CHECK(basic_words(c["text"].get<std::string>(), python) == c["words"].get<std::vector<std::string>>());
  }
  CHECK(basic_words("ΑΣ", {.lower_case = false, .strip_accents = false, .final_sigma = true}).front() == "ΑΣ");

  const std::vector<std::string> tokens{"[PAD]", "[UNK]", "α", "##σ", "##ς", ".", "β", "σ"};
  const WordPiece rust{Vocabulary(tokens)}, sigma(Vocabulary(tokens), python);
  CHECK(rust.encode("ΑΣ") == Ids{2, 3});
  CHECK(sigma.encode("ΑΣ") == Ids{2, 4});
  // A long text is taken in stretches, none of which ends between the sigma and the letter that makes it no final one.
  for (size_t before = (1 << 16) - 4; before < (1 << 16) + 4; ++before) {
    const Ids ids = sigma.encode(std::string(before, ' ') + "ΑΣ.Β ΑΣ");
    CHECK(ids == Ids{2, 3, 5, 6, 2, 4});
  }

  const Scratch folder;
  save_wordpiece(sigma, folder.path());
  CHECK(load_wordpiece(folder.path()).options() == python);
  save_wordpiece(rust, folder.path());
  CHECK(load_wordpiece(folder.path()).options() == TokenizerOptions());
  CHECK(read_bytes(folder / "tokenizer_config.json").find("sigma") == std::string::npos);
}

TEST_CASE("Bytes that are not UTF-8 are replaced where that is asked for", "[data]") {
  const auto replaced = [](const std::string& text) { return utf8_text(text, BadUtf8::replace, "x"); };
  CHECK(replaced("caf\xc3\xa9 \U0001f600") == "café \U0001f600");
  CHECK(replaced("caf\xe9 x\xff") == "caf\ufffd x\ufffd");
  CHECK(replaced("\xed\xa0\x80|\xc3") == "\ufffd\ufffd\ufffd|\ufffd");
  CHECK(replaced("").empty());
  CHECK(small().encode(replaced("\xff"
                                "a\xfe b")) == small().encode("a b"));
  CHECK(utf8_text("é", BadUtf8::error, "x") == "é");
  CHECK_THAT(error_of<FileError>([] { utf8_text("a\xff", BadUtf8::error, "x"); }), Contains("x: byte 1: found 0xff"));
}

TEST_CASE("Words of the basic tokenizer", "[data]") {
  CHECK(words("a\u200bb") == "ab");            // zero width space: a format character
  CHECK(words("a\u00adb") == "ab");            // soft hyphen
  CHECK(words("a\u00a0b") == "a|b");           // no-break space
  CHECK(words("a\u0085b\vc") == "abc");        // controls, not white space
  CHECK(words("a\u2028b\u2029c") == "a|b|c");  // separators of lines and paragraphs
  CHECK(words("\u0130stanbul") == "istanbul");
  CHECK(words("\u0130", false) == "\u0130");
  CHECK(words("stra\u00dfe") == "stra\u00dfe");
  CHECK(words("\ufb01 \uff21") == "\ufb01|\uff41");                      // NFD, not NFKD
  CHECK(words("\ud55c") == "\u1112\u1161\u11ab");                        // hangul becomes jamo
  CHECK(words("\u304c\u306a") == "\u304b\u306a");                        // が -> か
  CHECK(words("\u0439") == "\u0438");                                    // й -> и
  CHECK(words("\u0e19\u0e49\u0e33") == "\u0e19\u0e33");                  // loses its tone
  CHECK(words("\u0915\u093c") == "\u0915");                              // loses its nukta
  CHECK(words("\U0001f468\u200d\U0001f469") == "\U0001f468\U0001f469");  // joiner dropped
  CHECK(words("it\u2019s") == "it|\u2019|s");
  CHECK(words("\u00a35 5\u20ac 2\u00d73 \u00a9") == "\u00a35|5\u20ac|2\u00d73|\u00a9");  // symbols stay
  CHECK(words("a_b-c$d^e") == "a|_|b|-|c|$|d|^|e");
  CHECK(words("\U0002b81f\U0002b820") == "\U0002b81f|\U0002b820");  // blocks end and begin here
  CHECK(words("\u039f\u03a3") == "\u03bf\u03c3");                   // final sigma stays plain
  CHECK(words("\ue000a") == "\ue000a");                             // private use is kept
  CHECK(words("E\u0301 \u00c9", false) == "E\u0301|\u00c9");        // cased: as written
  CHECK(basic_words("\u0130", {.lower_case = true, .strip_accents = false}) == std::vector<std::string>{"i\u0307"});
  CHECK(words("").empty());
}

TEST_CASE("Pieces and frames", "[data]") {
  const WordPiece tokenizer = small();
  CHECK(tokenizer.encode("unaffable ab") == Ids{5, 6, 7, 8, 10});
  CHECK(tokenizer.encode("unaffableness a") == Ids{1, 8});  // one failure makes the whole word unknown
  CHECK(tokenizer.encode(" [MASK]a[SEP]") == Ids{4, 8, 3});
  CHECK(tokenizer.encode("[mask]") == Ids{1, 1, 1});
  CHECK(tokenizer.encode("a" + std::string(99, 'b')).size() == 100);
  CHECK(tokenizer.encode("a" + std::string(100, 'b')) == Ids{1});
  std::string accents;  // characters count, not bytes
  for (int i = 0; i < 100; ++i) accents += "é";
  CHECK(WordPiece(tokenizer.vocabulary(), {false, false}).encode(accents).size() == 100);
  CHECK(tokenizer.encode_framed("").ids == Ids{2, 3});
  CHECK(tokenizer.encode_framed("a b c", 4).ids == Ids{2, 8, 9, 3});
  const Encoding pair = tokenizer.encode_pair("a b", "c", 0);
  CHECK(pair.ids == Ids{2, 8, 9, 3, 11, 3});
  CHECK(pair.types == Ids{0, 0, 0, 0, 1, 1});
  CHECK(tokenizer.decode(Ids{2, 5, 6, 7, 8, 4, 3, 0}) == "unaffable a [MASK]");
  CHECK_THAT(error_of<ValueError>([&] { tokenizer.encode_framed("a", 1); }), Contains("no room for [CLS] and [SEP]"));
  CHECK_THAT(error_of<ValueError>([&] { tokenizer.encode_pair("a", "b", 2); }), Contains("no room for [CLS] and two"));
  CHECK_THAT(error_of<ValueError>([&] { tokenizer.decode(Ids{14}); }), Contains("token number 14 outside [0, 14)"));
}

TEST_CASE("Text that is not UTF-8 is refused with its place", "[data]") {
  struct Case {
    std::string bytes, message;
  };
  const std::vector<Case> cases = {
      {"ab\xff", "notes.txt: byte 2: found 0xff, which is not UTF-8"},  // never valid
      {"\x80", "byte 0: found 0x80"},                                   // continuation without a start
      {"a\xc3", "byte 1: found 0xc3"},                                  // cut short
      {"\xc0\xaf", "byte 0: found 0xc0"},                               // overlong
      {"\xed\xa0\x80", "byte 0: found 0xed"},                           // surrogate
      {"\xf4\x90\x80\x80", "byte 0: found 0xf4"},                       // above U+10FFFF
      {"[MASK] \xe9t\xe9", "byte 7: found 0xe9"},                       // Latin-1
  };
  for (const Case& c : cases) {
    INFO(c.message);
    CHECK_THAT(error_of<FileError>([&] { small().encode(c.bytes, "notes.txt"); }), Contains(c.message));
  }
}

TEST_CASE("A tokenizer's files", "[data]") {
  const Scratch folder;
  const WordPiece cased(small().vocabulary(), {.lower_case = false, .strip_accents = false});
  save_wordpiece(cased, folder.path());
  const WordPiece back = load_wordpiece(folder.path());
  CHECK_FALSE(back.options().lower_case);
  CHECK_FALSE(back.options().strip_accents);
  CHECK(back.vocabulary().size() == cased.vocabulary().size());
  const auto message = [&](const std::string& config) {
    write_bytes(folder / "tokenizer_config.json", config);
    return error_of<FileError>([&] { load_wordpiece(folder.path()); });
  };
  CHECK(message("{\"strip_accents\": null}") == "no error");
  CHECK_THAT(message("{"), Contains("tokenizer_config.json: is not JSON: byte 1: while parsing object key"));
  CHECK_THAT(message("{\"do_lower_case\": 1}"), Contains("do_lower_case: found 1, expected true or false"));
  CHECK_THAT(message("{\"tokenizer_class\": \"GPT2Tokenizer\"}"), Contains("found \"GPT2Tokenizer\", expected"));
  CHECK_THAT(message("{\"tokenize_chinese_chars\": false}"), Contains("tokenize_chinese_chars: found false"));
}
