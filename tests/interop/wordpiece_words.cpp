// Prints the words of each line of standard input, parted by U+001F: the program that wordpiece.py compares with
// Python.
//   c++ -std=c++20 -O2 -Iinclude tests/interop/wordpiece_words.cpp -Lbuild/release/lib -lcinta -o wordpiece_words
#include <cstdio>
#include <iostream>
#include <string>

#include "cinta/data/wordpiece.h"

int main(int count, char** arguments) {
  const bool lower = count < 2 || arguments[1] == std::string("lower");
  for (std::string line; std::getline(std::cin, line);) {
    std::string out;
    for (const std::string& word : cinta::data::basic_words(line, {.lower_case = lower, .strip_accents = lower}))
      out += (out.empty() ? "" : "\x1f") + word;
    std::puts(out.c_str());
  }
}
