// A strict reader of the markup that reports are made of: HTML that is XML as well.
#pragma once
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace cinta::testing {

/// What is wrong with a page; empty when every element is closed in order, every attribute stands in quotes and once,
/// every reference is known, and neither '<' nor '&' stands where a reader of XML or HTML would take it otherwise.
inline std::string fault_of(std::string_view page) {
  constexpr std::string_view name_letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-:";
  const std::string_view whole = page;
  const auto fault = [&](const std::string& text) {
    return text + " at byte " + std::to_string(page.data() - whole.data()) + ": " + std::string(page.substr(0, 60));
  };
  const auto take = [&](std::string_view text) {
    if (!page.starts_with(text)) return false;
    page.remove_prefix(text.size());
    return true;
  };
  const auto take_name = [&] {
    const std::string_view name = page.substr(0, std::min(page.find_first_not_of(name_letters), page.size()));
    page.remove_prefix(name.size());
    return name;
  };
  const auto take_reference = [&] {
    for (std::string_view known : {"&amp;", "&lt;", "&gt;", "&quot;", "&#10;"})
      if (take(known)) return true;
    return false;
  };
  if (!take("<!DOCTYPE html>\n")) return fault("no document type");
  std::vector<std::string_view> open;
  while (!page.empty()) {
    if (page[0] == '&') {
      if (!take_reference()) return fault("an unknown reference");
    } else if (take("</")) {
      if (open.empty() || take_name() != open.back() || !take(">")) return fault("an end of what is not open");
      open.pop_back();
    } else if (take("<")) {
      const std::string_view name = take_name();
      if (name.empty()) return fault("'<' that begins nothing");
      std::vector<std::string_view> attributes;
      while (take(" ")) {
        const std::string_view attribute = take_name();
        if (attribute.empty() || !take("=\"")) return fault("an attribute without a value in quotes");
        if (std::ranges::find(attributes, attribute) != attributes.end()) return fault("an attribute that is there");
        attributes.push_back(attribute);
        while (!take("\"")) {
          if (page.empty() || page[0] == '<') return fault("an attribute without an end");
          if (page[0] != '&')
            page.remove_prefix(1);
          else if (!take_reference())
            return fault("an unknown reference");
        }
      }
      if (!take("/>")) {
        if (!take(">")) return fault("a tag without an end");
        open.push_back(name);
      }
    } else {
      if (open.empty() && page[0] != '\n') return fault("text outside of the page");
      page.remove_prefix(1);
    }
  }
  return open.empty() ? "" : "not closed: " + std::string(open.back());
}

}  // namespace cinta::testing
