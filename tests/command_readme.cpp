// The command lines that README.md, CONTRIBUTING.md and the guides in docs show: each names a command that there is,
// with options that it has.
#include <catch2/catch.hpp>
#include <cctype>
#include <sstream>

#include "command_helpers.h"

using namespace cinta::testing;

namespace {

/// A command line as a page shows it.
struct Shown {
  Arguments command;  ///< train, bert
  Arguments options;  ///< --data, --max_steps
};

/// The words of a line in a block of code, up to a comment; quoted ones stay together and lose their quotes.
Arguments words_of(const std::string& line) {
  Arguments out;
  bool inside = false, begun = false;
  for (const char c : line) {
    if (c == '"') {
      inside = !inside;
      if (!begun) out.emplace_back(), begun = true;
    } else if (!inside && (c == ' ' || c == '\\')) {
      begun = false;
    } else if (!inside && !begun && c == '#') {
      break;
    } else {
      if (!begun) out.emplace_back(), begun = true;
      out.back() += c;
    }
  }
  return out;
}

/// What `words` call, and, behind --, what that calls in turn.
void add_commands(const Arguments& words, std::vector<Shown>& out) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "cinta" || words[i] == "--") {
      out.emplace_back();
      // Two words at most are a command's; others are values.
      for (size_t next = i + 1; next < words.size() && next < i + 3; ++next) {
        if (words[next].find_first_not_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos) break;
        out.back().command.push_back(words[next]);
      }
    } else if (words[i].starts_with("--") && !out.empty()) {
      out.back().options.push_back(words[i].substr(0, words[i].find('=')));
    }
  }
}

std::vector<Shown> shown_in(const std::string& page) {
  std::istringstream text(read_bytes(CINTA_SOURCE_DIR "/" + page));
  std::vector<Shown> out;
  const std::string built = "build/release/bin/";  // where the guides have it
  bool block = false;
  std::string whole;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("```")) block = !block;
    whole += line;
    if (block && line.ends_with("\\")) continue;
    if (whole.starts_with(built)) whole.erase(0, built.size());
    if (block && whole.starts_with("cinta ")) add_commands(words_of(whole), out);
    whole.clear();
  }
  return out;
}

}  // namespace

TEST_CASE("commands shown in README.md and the guides exist, with the options they are shown with",
          "[command_readme]") {
  std::vector<Shown> all = shown_in("README.md");
  CHECK(all.size() > 20);
  std::vector<std::string> guides{"CONTRIBUTING.md"};
  for (const auto& entry : std::filesystem::directory_iterator(CINTA_SOURCE_DIR "/docs"))
    if (entry.path().extension() == ".md") guides.push_back("docs/" + entry.path().filename().string());
  CHECK(!shown_in(guides.front()).empty());
  for (const std::string& guide : guides)
    for (Shown& shown : shown_in(guide)) all.push_back(std::move(shown));
  for (Shown shown : all) {
    std::string line = "cinta";
    for (const std::string& word : shown.command + shown.options) line += " " + word;
    INFO(line);
    REQUIRE(!shown.command.empty());
    Finished help = run_cinta(shown.command + Arguments{"--help"});
    if (help.out.find("--help") == std::string::npos || help.code != 0) {  // the second word was a value
      shown.command.resize(1);
      help = run_cinta(shown.command + Arguments{"--help"});
    }
    REQUIRE(help.code == 0);
    for (const std::string& option : shown.options) {
      INFO(option);
      size_t at = help.out.find(option);  // "--data" is not found in "--data_dir"
      while (at != std::string::npos &&
             (std::isalnum(help.out[at + option.size()]) || help.out[at + option.size()] == '_'))
        at = help.out.find(option, at + 1);
      CHECK(at != std::string::npos);
    }
  }
}
