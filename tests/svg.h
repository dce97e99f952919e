// What tests of charts ask of an SVG's text.
#pragma once
#include <string>
#include <vector>

namespace cinta::testing {

/// What stands between `before` and the next `after`, everywhere in the text.
inline std::vector<std::string> all_between(const std::string& text, const std::string& before,
                                            const std::string& after) {
  std::vector<std::string> out;
  for (size_t at = 0; (at = text.find(before, at)) != text.npos;) {
    at += before.size();
    out.push_back(text.substr(at, text.find(after, at) - at));
  }
  return out;
}

/// True if every element is closed in order: what a browser asks of XML here.
inline bool balanced(const std::string& svg) {
  std::vector<std::string> open;
  for (const auto& tag : all_between(svg, "<", ">")) {
    const auto name = tag.substr(0, tag.find_first_of(" \n"));
    if (tag.find('<') != tag.npos || name.empty()) return false;
    if (!name.starts_with('/')) {
      if (!tag.ends_with('/')) open.push_back(name);
    } else if (open.empty() || "/" + open.back() != name) {
      return false;
    } else {
      open.pop_back();
    }
  }
  return open.empty() && svg.starts_with("<svg ");
}

}  // namespace cinta::testing
