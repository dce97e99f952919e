// Text folders: which files count, licences, the split and its near-duplicates, sequences.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "cinta/data/corpus.h"
#include "cinta/data/sequences.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::data;
using namespace cinta::testing;
using Catch::Matchers::Contains;

namespace {

/// Forty lines that no other number has.
std::string lines(int number, int count = 40) {
  std::string out;
  for (int i = 0; i < count; ++i) out += "int value_" + std::to_string(number) + "_" + std::to_string(i) + ";\n";
  return out;
}

std::vector<std::string> paths(const std::vector<Document>& documents) {
  std::vector<std::string> out;
  for (const Document& document : documents) out.push_back(document.path);
  return out;
}

}  // namespace

TEST_CASE("Text files of a folder in order", "[data]") {
  const Scratch folder;
  std::filesystem::create_directories(folder / "b/deep");
  write_bytes(folder / "z", "last\n");
  write_bytes(folder / "b/deep/x.h", "// Copyright somebody\n\nint x;\n");
  write_bytes(folder / "b.h", "int b;\n");
  write_bytes(folder / "empty", " \n");
  write_bytes(folder / "binary", std::string("a\0b", 3));
  write_bytes(folder / "utf16", std::string("a\0b\0", 4));
  std::string told;
  const std::vector<Document> documents =
      read_documents(folder.path(), BadUtf8::error, Where(), [&](const std::string& text) { told += text; });
  CHECK_THAT(told, Contains("are left out: 2, the first binary"));
  CHECK(paths(documents) == std::vector<std::string>{"b.h", "b/deep/x.h", "z"});
  CHECK(documents[1].text == "int x;\n");
  CHECK(paths(read_documents(folder / "z")) == std::vector<std::string>{"z"});
  CHECK_THAT(error_of<FileError>([&] { read_documents(folder / "none"); }), Contains("none: cannot be opened"));
  CHECK_THAT(error_of<FileError>([&] { read_documents(folder / "empty"); }), Contains("empty: holds no text"));
  write_bytes(folder / "b/latin1.txt", "caf\xe9\n");
  CHECK_THAT(error_of<FileError>([&] { read_documents(folder.path()); }),
             Contains("b/latin1.txt: byte 3: found 0xe9, which is not UTF-8"));
  CHECK(read_documents(folder.path(), BadUtf8::replace)[2].text == "caf\ufffd\n");
}

TEST_CASE("Only a licence in front is cut off", "[data]") {
  CHECK(without_licence(
            "// x -*- C++ -*-\n\n// Copyright (C) A\n\n/* more */\n/** doc */\n#include <x>\n// Copyright B\n") ==
        "#include <x>\n// Copyright B\n");
  CHECK(without_licence("/*\n * Licensed to you\n */ int x;") == "int x;");
  CHECK(without_licence("// About this file.\nint x;") == "// About this file.\nint x;");
  CHECK(without_licence("int x; // Copyright") == "int x; // Copyright");
  CHECK(without_licence("// Copyright only") == "");
  CHECK(without_licence("/* Copyright without end") == "");
  CHECK(without_licence("") == "");
}

TEST_CASE("Held-out files have no near-duplicate in training", "[data]") {
  CHECK(is_near_duplicate(lines(1), lines(1)));
  CHECK(is_near_duplicate(lines(1), "  " + lines(1) + "\n\nnew line\n"));
  CHECK(is_near_duplicate(lines(1, 40), lines(1, 20)));
  CHECK_FALSE(is_near_duplicate(lines(1, 40), lines(1, 19)));
  CHECK_FALSE(is_near_duplicate(lines(1), lines(2)));
  CHECK_FALSE(is_near_duplicate("", ""));

  std::vector<Document> documents;
  for (int i = 0; i < 200; ++i) {
    documents.push_back({"file" + std::to_string(i), lines(i)});
    documents.push_back({"copy" + std::to_string(i), lines(i) + "int extra;\n"});
  }
  const DocumentSplit split = split_documents(documents, 0.2, 1);
  CHECK(split.held_out.size() > 50);
  CHECK(split.held_out.size() < 110);
  CHECK(split.near_duplicates > 20);
  CHECK(split.train.size() + split.held_out.size() + static_cast<size_t>(split.near_duplicates) == documents.size());
  for (const Document& held_out : split.held_out)
    for (const Document& document : split.train) REQUIRE_FALSE(is_near_duplicate(held_out.text, document.text));

  CHECK(paths(split_documents(documents, 0.2, 1).held_out) == paths(split.held_out));
  CHECK(paths(split_documents(documents, 0.2, 2).held_out) != paths(split.held_out));
  documents.erase(documents.begin() + 7);  // a file's side does not depend on the other files
  CHECK(paths(split_documents(documents, 0.2, 1).held_out).size() + 1 >= split.held_out.size());
}

TEST_CASE("A split needs something on both sides", "[data]") {
  const DocumentSplit two = split_documents({{"a", lines(1)}, {"b", lines(2)}}, 0.001, 1);
  CHECK(two.held_out.size() == 1);
  CHECK(two.train.size() == 1);
  CHECK_THAT(error_of<ValueError>([] {
               split_documents({{"a", "x"}}, 0.1, 1);
             }),
             Contains("needs at least two documents"));
  CHECK_THAT(error_of<ValueError>([] {
               split_documents({{"a", lines(1)}, {"b", lines(1)}}, 0.1, 1);
             }),
             Contains("no document is left for training"));
}

TEST_CASE("A single document is split in parts, by lines", "[data]") {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += join("line ", i, std::string(static_cast<size_t>(i % 50), 'x'), "\n");
  const DocumentSplit split = split_documents({{"book", text}}, 0.05, 1);
  CHECK(split.held_out.size() >= 1);
  CHECK(split.held_out.size() <= 15);
  CHECK(split.train.size() + split.held_out.size() == 100);
  std::map<int, std::string> parts;
  for (const std::vector<Document>& side : {split.train, split.held_out})
    for (const Document& part : side) {
      CHECK(part.text.ends_with('\n'));
      CHECK(part.text.size() < text.size() / 50);
      parts[std::stoi(part.path.substr(part.path.find(':') + 1))] = part.text;
    }
  std::string joined;
  for (const auto& [number, part] : parts) joined += part;
  CHECK(joined == text);

  std::string line = text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  const DocumentSplit words = split_documents({{"line", line}}, 0.05, 1);
  CHECK(words.train.size() + words.held_out.size() == 100);

  const DocumentSplit short_one = split_documents({{"book", "one\ntwo"}}, 0.05, 1);
  CHECK(short_one.held_out.size() == 1);
  CHECK(short_one.train.size() == 1);
  const std::string lopsided = "a\n" + std::string(1000, 'b') + "\nc\n";
  const DocumentSplit few = split_documents({{"book", lopsided}}, 0.05, 1);
  CHECK(few.train.size() + few.held_out.size() == 2);
}

TEST_CASE("Parts of a document that are blank are no documents", "[data]") {
  const std::string tail(10000, '\n');
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const DocumentSplit split = split_documents({{"book", lines(1) + lines(2) + lines(3) + tail}}, 0.3, seed);
    CHECK(split.train.size() + split.held_out.size() > 2);
    for (const std::vector<Document>& side : {split.train, split.held_out})
      for (const Document& part : side) CHECK_THAT(part.text, Contains("int value_"));
  }
  std::string same;
  for (int i = 0; i < 50; ++i) same += "int a = 3;\nfoo bar baz\n\n";
  CHECK_THAT(error_of<ValueError>([&] {
               split_documents({{"book", same}}, 0.1, 1);
             }),
             Contains("no document is left for training"));
  CHECK_THAT(error_of<ValueError>([&] {
               split_documents({{"book", "x" + tail}}, 0.1, 1);
             }),
             Contains("one of several words, given book") && !Contains("book:"));
}

TEST_CASE("Documents become sequences", "[data]") {
  const WordPiece tokenizer(Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"}));
  const Sequences sequences = make_sequences({{"x", "a b a b a"}, {"y", "b"}, {"z", "a a a"}}, tokenizer, 5);
  CHECK(sequences.count == 4);
  CHECK(sequences.length == 5);
  using Numbers = std::vector<int32_t>;
  CHECK(std::ranges::equal(sequences.ids, Numbers{2, 5, 6, 5, 3, 2, 6, 5, 3, 0, 2, 6, 3, 0, 0, 2, 5, 5, 5, 3}));
  CHECK(std::ranges::equal(sequences.lengths, Numbers{5, 4, 3, 5}));
  CHECK(std::ranges::equal(sequences.documents, Numbers{0, 0, 1, 2}));
  CHECK(std::ranges::equal(sequences.tokens(1), Numbers{6, 5}));
  CHECK_THAT(error_of<ValueError>([&] { make_sequences({}, tokenizer, 2); }), Contains("given length 2"));
  CHECK_THAT(error_of<FileError>([&] {
               make_sequences({{"dir/f", "a\xff"}}, tokenizer, 5);
             }),
             Contains("dir/f: byte 1: found 0xff"));
}
