// BERT's tokenizer beside the `tokenizers` library, by goldens of tests/interop/wordpiece_corpus.py: every code point,
// and the library's own files.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cinta/data/file.h"
#include "cinta/data/unicode.h"
#include "cinta/data/wordpiece_files.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::data;
using namespace cinta::testing;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

Json golden(const std::string& name) { return Json::parse(read_bytes(CINTA_SOURCE_DIR "/tests/golden/" + name)); }

std::string utf8(int32_t point) {
  std::string out;
  append_utf8(out, point);
  return out;
}

std::string words(const std::string& text, bool lower) {
  std::string out;
  for (const std::string& word : basic_words(text, {lower, lower})) out += (out.empty() ? "" : "\x1f") + word;
  return out;
}

using Ids = std::vector<int32_t>;

}  // namespace

TEST_CASE("every code point makes the words that the library makes of it", "[tokenizers_library]") {
  const Json all = golden("wordpiece_code_points.json");
  std::vector<bool> differs(0x110000);
  for (const auto& [name, ranges] : all["differ"].items())
    for (const auto& range : ranges)
      for (int32_t point = range[0]; point <= range[1]; ++point) differs[static_cast<size_t>(point)] = true;
  const int32_t size = all["block"];
  for (const bool lower : {true, false}) {
    const Json& sums = all["crc32"][lower ? "lower" : "cased"];
    REQUIRE(sums.size() == differs.size() / static_cast<size_t>(size));
    for (int32_t block = 0; block < static_cast<int32_t>(sums.size()); ++block) {
      std::string text;
      for (int32_t point = block * size; point < (block + 1) * size; ++point) {
        if ((point >= 0xD800 && point < 0xE000) || differs[static_cast<size_t>(point)]) continue;
        text += words(utf8(point), lower) + '\x1e' + words("a" + utf8(point) + "b", lower) + '\n';
      }
      INFO((lower ? "lower" : "cased") << " block " << block);
      CHECK(crc32_of(std::as_bytes(std::span(text))) == sums[static_cast<size_t>(block)].get<uint32_t>());
    }
  }
}

TEST_CASE("where the library differs by a code point, it is decided what stands here", "[tokenizers_library]") {
  const Json differ = golden("wordpiece_code_points.json")["differ"];
  auto check = [&](const char* name, size_t count, auto lower, auto cased) {
    size_t found = 0, wrong = 0;
    for (const auto& range : differ.at(name))
      for (int32_t point = range[0]; point <= range[1]; ++point, ++found) {
        const std::string text = utf8(point), inside = "a" + text + "b";
        wrong += words(inside, true) != lower(text) || words(inside, false) != cased(text);
      }
    INFO(name);
    CHECK(found == count);
    CHECK(wrong == 0);
  };
  auto kept = [](const std::string& text) { return "a" + text + "b"; };
  auto dropped = [](const std::string&) { return std::string("ab"); };
  auto alone = [](const std::string& text) { return "a\x1f" + text + "\x1f" + "b"; };
  check("private", 137468, kept, kept);    // the library drops them
  check("ideographs", 256, alone, alone);  // U+2B820 to 2B91F; the library's block begins later by a slip
  check("format", 20, dropped, dropped);   // younger than the library's table, as are the next two
  check("marks", 419, dropped, kept);
  check("punctuation", 127, alone, alone);
  check("younger", 55, kept, kept);              // than Unicode 15; the library knows their lower case
  CHECK(differ.at("changed").size() == 3);       // classes and parts of three are others since
  CHECK(words("a\u166db", true) == "a\u166db");  // a symbol, once punctuation
  CHECK(words("a\u1734b", true) == "a\u1734b");  // a spacing mark, once not
  CHECK(words("a\U00011938b", true) == "a\U00011935\U00011930b");
  CHECK(differ.size() == 7);
}

TEST_CASE("files that the library wrote are read, and give its ids", "[tokenizers_library]") {
  const Scratch folder;
  const Json all = golden("tokenizer_json.json");
  REQUIRE(all.size() == 4);  // lower case or not, accents stripped with it, never, always
  for (const Json& one : all) {
    write_bytes(folder / "tokenizer.json", one["file"].dump());
    const WordPiece tokenizer = load_wordpiece(folder.path());
    for (const Json& text : one["texts"]) {
      INFO(one["file"]["normalizer"].dump() << text.dump());
      CHECK(tokenizer.encode_framed(text["text"].get<std::string>()).ids == text["ids"].get<Ids>());
    }
  }
  const std::string tokens = load_wordpiece(folder.path()).vocabulary().text();
  write_bytes(folder / "vocab.txt", tokens);
  CHECK(load_wordpiece(folder.path()).vocabulary().text() == tokens);
  write_bytes(folder / "vocab.txt", "[UNK]\nlines\n");  // which the library would pass over
  CHECK_THAT(error_of<FileError>([&] { load_wordpiece(folder.path()); }),
             Contains("vocab.txt: has other tokens than tokenizer.json"));
}

TEST_CASE("files that add or rename a token are refused", "[tokenizers_library]") {
  const Scratch folder;
  write_bytes(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nnew\n");
  auto error_with = [&](const char* name, const char* text) {
    write_bytes(folder / name, text);
    const std::string error = error_of<FileError>([&] { load_wordpiece(folder.path()); });
    std::filesystem::remove(folder / name);
    return error;
  };
  const std::string only = ", only BERT's special tokens are supported";
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    INFO(name);
    CHECK(error_with(name, R"({"mask_token": "[MASK]", "pad_token": {"content": "[PAD]"}, "unk_token": null,
                               "additional_special_tokens": ["[SEP]"],
                               "added_tokens_decoder": {"4": {"content": "[MASK]"}}})") == "no error");
    CHECK(error_with(name, R"({"eos_token": "[SEP]", "add_bos_token": true})") == "no error");
    CHECK_THAT(error_with(name, R"({"mask_token": "<mask>"})"),
               Contains(std::string(name) + ": mask_token: found \"<mask>\"" + only));
    CHECK_THAT(error_with(name, R"({"mask_token": "[PAD]"})"),
               Contains("mask_token: found \"[PAD]\", only \"[MASK]\" is supported"));
    CHECK_THAT(error_with(name, R"({"image_token": "<s>"})"), Contains("image_token: found \"<s>\"" + only));
    CHECK_THAT(error_with(name, R"({"added_tokens_decoder": {"4": {"content": "[MASK]", "single_word": true}}})"),
               Contains("added_tokens_decoder: [MASK].single_word: found true, only false is supported"));
    CHECK_THAT(error_with(name, R"({"cls_token": {"content": "<s>"}})"), Contains("cls_token: found \"<s>\"" + only));
    CHECK_THAT(error_with(name, R"({"additional_special_tokens": ["new"]})"),
               Contains("additional_special_tokens: found \"new\"" + only));
    CHECK_THAT(error_with(name, R"({"added_tokens_decoder": {"7": {"content": "<new>"}}})"),
               Contains("added_tokens_decoder: found \"<new>\"" + only));
    CHECK_THAT(error_with(name, R"({"added_tokens_decoder": {"3": {"content": "[MASK]"}}})"),
               Contains("added_tokens_decoder: [MASK] has the number 3, in the vocabulary 4"));
    CHECK_THAT(error_with(name, R"({"added_tokens_decoder": 1})"), Contains(name));
  }
  CHECK(error_with("added_tokens.json", R"({"[MASK]": 4})") == "no error");
  CHECK_THAT(error_with("added_tokens.json", R"({"<new>": 7})"),
             Contains("added_tokens.json: tokens: found \"<new>\"" + only));
  CHECK_THAT(error_with("added_tokens.json", R"({"[MASK]": 3})"),
             Contains("[MASK] has the number 3, in the vocabulary 4"));
  CHECK_THAT(error_with("tokenizer.json", "{"), Contains("tokenizer.json"));
  for (const char* target : {"nowhere", "tokenizer.json"}) {  // a link to nothing, and one to itself
    std::filesystem::create_symlink(target, folder / "tokenizer.json");
    CHECK_THAT(error_of<FileError>([&] { load_wordpiece(folder.path()); }),
               Contains("tokenizer.json: cannot be opened"));
    std::filesystem::remove(folder / "tokenizer.json");
  }
}

TEST_CASE("another tokenizer's file is refused by what is not supported", "[tokenizers_library]") {
  const Scratch folder;
  const Json good = golden("tokenizer_json.json")[0]["file"];
  auto error_with = [&](const std::string& place, const Json& value) {
    Json file = good;
    file[Json::json_pointer(place)] = value;
    write_bytes(folder / "tokenizer.json", file.dump());
    return error_of<FileError>([&] { load_wordpiece(folder.path()); });
  };
  CHECK(error_with("/truncation", {{"max_length", 8}}) == "no error");
  Json old_model = good["model"];  // as bert-base-uncased has it
  old_model.erase("type");
  CHECK(error_with("/model", old_model) == "no error");
  CHECK(error_with("/post_processor", nullptr) == "no error");
  CHECK(error_with("/post_processor", Json::parse(R"({"type": "BertProcessing", "sep": ["[SEP]", 3],
                                                      "cls": ["[CLS]", 2]})")) == "no error");
  struct Case {
    const char* place;
    Json value;
    const char* part;
  };
  for (const Case& one : std::vector<Case>{
           {"/model/type", "BPE", "model: found type \"BPE\", only WordPiece is supported"},
           {"/model", nullptr, "model: found type null"},
           {"/model", Json{{"vocab", Json::object()}, {"merges", Json::array()}}, "model: found type null"},
           {"/model/unk_token", "<unk>", "model.unk_token: found \"<unk>\", only \"[UNK]\" is supported"},
           {"/model/continuing_subword_prefix", "@@", "model.continuing_subword_prefix: found \"@@\""},
           {"/model/max_input_chars_per_word", 200, "model.max_input_chars_per_word: found 200, only 100"},
           {"/model/vocab", Json::array(), "model.vocab: found array"},
           {"/model/vocab/a", 99, "model.vocab: token \"a\" has the number 99, expected each of 0 to"},
           {"/model/vocab/a", 0, "model.vocab: token \"a\" has the number 0"},
           {"/model/vocab/a", "15", "model.vocab: token \"a\" has the number \"15\""},
           {"/normalizer", nullptr, "normalizer: found type null, only BertNormalizer is supported"},
           {"/normalizer/type", "NFC", "normalizer: found type \"NFC\""},
           {"/normalizer/clean_text", false, "normalizer.clean_text: found false, only true is supported"},
           {"/normalizer/handle_chinese_chars", false, "normalizer.handle_chinese_chars: found false"},
           {"/normalizer/lowercase", "yes", "normalizer.lowercase: found \"yes\", expected true or false"},
           {"/pre_tokenizer/type", "Whitespace", "pre_tokenizer: found type \"Whitespace\", only BertPreTokenizer"},
           {"/post_processor/type", "ByteLevel", "post_processor: found type \"ByteLevel\""},
           {"/post_processor/single/0/SpecialToken/id", "<s>", "post_processor.single: found"},
           {"/added_tokens/0/content", "[NEW]", "added_tokens: found \"[NEW]\", only BERT's special tokens"},
           {"/added_tokens/4/lstrip", true, "added_tokens: [MASK].lstrip: found true"},
           {"/added_tokens/4/id", 7, "added_tokens: [MASK] has the number 7, in model.vocab it has 4"},
           {"/added_tokens", Json::array(), "added_tokens: has no [PAD]"}}) {
    INFO(one.place << " " << one.value.dump());
    CHECK_THAT(error_with(one.place, one.value), Contains("tokenizer.json: " + std::string(one.part)));
  }
  write_bytes(folder / "tokenizer.json", good.dump());
  write_bytes(folder / "tokenizer_config.json", R"({"do_lower_case": true, "strip_accents": null})");
  CHECK(load_wordpiece(folder.path()).options() == TokenizerOptions());
  write_bytes(folder / "tokenizer_config.json", R"({"do_lower_case": true, "final_sigma": true})");
  CHECK(load_wordpiece(folder.path()).options().final_sigma);
  write_bytes(folder / "tokenizer_config.json", R"({"do_lower_case": false})");
  CHECK_THAT(error_of<FileError>([&] { load_wordpiece(folder.path()); }),
             Contains("say otherwise than the normalizer"));
}
