// The table of known names, and the search in it.
#include "cinta/data/text_columns.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace cinta::data {
namespace {

using Name = std::string_view;

constexpr Name first_names[] = {"text",     "sentence1", "premise", "question1", "question",
                                "sentence", "review",    "content", "comment"};
constexpr Name second_names[] = {"text_pair", "pair", "sentence2", "hypothesis", "question2"};
constexpr Name label_names[] = {"label", "labels", "sentiment", "category", "class", "target"};

std::string plain(const std::string& name) {
  const size_t begin = name.find_first_not_of(" \t"), end = name.find_last_not_of(" \t");
  if (begin == name.npos) return {};
  std::string out = name.substr(begin, end + 1 - begin);
  for (char& letter : out)
    if (letter >= 'A' && letter <= 'Z') letter += 'a' - 'A';
  return out;
}

std::string listed(std::span<const Name> names) {
  std::string out;
  for (const Name name : names) out.append(out.empty() ? "" : ", ").append(name);
  return out;
}

}  // namespace

TextColumns columns_by_name(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  std::ranges::transform(names, std::back_inserter(all), plain);
  auto find = [&](std::span<const Name> known) {
    for (const Name name : known)
      if (const auto found = std::ranges::find(all, name); found != all.end())
        return static_cast<int>(found - all.begin());
    return -1;
  };
  TextColumns out{find(first_names), find(second_names), find(label_names)};
  if (out.first >= 0 && out.second < 0 && all[static_cast<size_t>(out.first)] == "question") {
    constexpr Name answer[] = {"sentence"};
    out.second = find(answer);
  }
  return out;
}

std::string known_text_names() { return listed(first_names); }

std::string known_label_names() { return listed(label_names); }

std::string known_column_names() {
  return "text: " + known_text_names() + "; second text: " + listed(second_names) + ", sentence (of a question)" +
         "; label: " + known_label_names();
}

std::string read_columns(const TextColumns& columns, const std::vector<std::string>& names) {
  std::string out;
  for (const auto& [what, column] :
       {std::pair("text", columns.first), std::pair("second text", columns.second), std::pair("label", columns.label)})
    if (column >= 0)
      out.append(out.empty() ? "" : ", ").append(what).append(": '" + names[static_cast<size_t>(column)] + "'");
  return out;
}

std::vector<std::string> unread_columns(const TextColumns& columns, const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (int i = 0; i < static_cast<int>(names.size()); ++i)
    if (i != columns.first && i != columns.second && i != columns.label) out.push_back(names[static_cast<size_t>(i)]);
  return out;
}

}  // namespace cinta::data
