// Prints the words of each line of standard input, parted by U+001F; with a tokenizer's folder the numbers of its
// tokens, parted by spaces: the program that wordpiece.py and wordpiece_corpus.py compare with Python.
//   c++ -std=c++20 -O2 -Iinclude tests/interop/wordpiece_words.cpp -Lbuild/release/lib -lcinta -o wordpiece_words
//   wordpiece_words lower|cased|sigma|FOLDER < lines
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>

#include "cinta/data/wordpiece_files.h"

int main(int count, char** arguments) {
  const std::string mode = count < 2 ? "lower" : arguments[1];
  const bool sigma = mode == "sigma", lower = sigma || mode == "lower";
  std::optional<cinta::data::WordPiece> tokenizer;
  if (!lower && mode != "cased") tokenizer = cinta::data::load_wordpiece(mode);
  for (std::string line; std::getline(std::cin, line);) {
    std::string out;
    if (tokenizer)
      for (const int32_t id : tokenizer->encode(line)) out += (out.empty() ? "" : " ") + std::to_string(id);
    else
      for (const std::string& word : cinta::data::basic_words(line, {lower, lower, sigma}))
        out += (out.empty() ? "" : "\x1f") + word;
    std::puts(out.c_str());
  }
}
