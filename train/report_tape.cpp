// The tape of a step: what ops and modules keep for backward, and each node with arcs from those it takes from.
#include <algorithm>
#include <map>

#include "cinta/train/readable.h"
#include "cinta/train/report_sections.h"

namespace cinta::train {
namespace {

constexpr size_t most_nodes = 160;  // a longer tape is drawn folded by modules
constexpr size_t most_rows = 12;
constexpr int row_height = 26, rail = 64, spine = 54;

struct Kept {
  std::string name;
  int64_t nodes = 0, held = 0, elsewhere = 0;
  void add(const Kept& other) {
    nodes += other.nodes;
    held += other.held;
    elsewhere += other.elsewhere;
  }
};

template <class NameOf>
std::string table(const std::vector<TapeNode>& tape, const char* what, NameOf name_of) {
  std::map<std::string, Kept> sums;
  for (const TapeNode& node : tape) {
    Kept& sum = sums[name_of(node)];
    ++sum.nodes;
    sum.held += node.held_bytes();
    sum.elsewhere += node.elsewhere_bytes();
  }
  std::vector<Kept> rows;
  bool any_elsewhere = false;
  for (auto& [name, sum] : sums) {
    sum.name = name;
    any_elsewhere |= sum.elsewhere > 0;
    rows.push_back(sum);
  }
  std::ranges::stable_sort(rows, std::greater(), [](const Kept& sum) { return sum.held + sum.elsewhere; });
  fold_rest(rows, most_rows, {});
  int64_t longest = 1;
  for (const Kept& row : rows) longest = std::max(longest, row.held + row.elsewhere);
  const auto percent = [&](int64_t bytes) { return 100 * static_cast<double>(bytes) / static_cast<double>(longest); };
  std::vector<std::string> heads{"nodes", "holds", ""};
  if (any_elsewhere) heads.insert(heads.begin() + 2, "brings back");
  std::string out = element("thead", "", table_row({what}, heads, "th"));
  for (const Kept& row : rows) {
    std::vector<std::string> cells{whole_count(row.nodes), bytes_text(row.held),
                                   share_bar({{percent(row.held), "k7"}, {percent(row.elsewhere), "k7 late"}})};
    if (any_elsewhere) cells.insert(cells.begin() + 2, bytes_text(row.elsewhere));
    out += table_row({escaped(row.name)}, cells);
  }
  return element("div", "class=\"scroll\"", element("table", "", out));
}

std::string parameters_of(const TapeNode& node) {
  std::string out;
  for (const TapeInput& input : node.inputs)
    if (!input.name.empty()) out += "&#10;" + escaped(input.name + " " + input.tensor);
  return out;
}

/// One line a node; the arcs stand to the left of all.
std::string picture(const std::vector<TapeNode>& tape) {
  std::map<uint64_t, int> place;
  int64_t most = 1;
  for (const TapeNode& node : tape) {
    place.emplace(node.number, static_cast<int>(place.size()));
    most = std::max(most, node.held_bytes() + node.elsewhere_bytes());
  }
  const auto y_of = [](int row) { return row * row_height + row_height / 2; };
  std::string arcs, dots, rows;
  for (const TapeNode& node : tape) {
    const int to = place[node.number];
    for (const TapeInput& input : node.inputs) {
      const auto from = place.find(input.from);
      if (from == place.end()) continue;
      const int length = to - from->second, bend = length == 1 ? 0 : std::min(spine - 4, 8 + 4 * length);
      arcs += join("<path d=\"M", spine, " ", y_of(from->second), "C", spine - bend, " ", y_of(from->second), " ",
                   spine - bend, " ", y_of(to), " ", spine, " ", y_of(to), "\"/>");
    }
    dots += join("<circle cx=\"", spine, "\" cy=\"", y_of(to), "\" r=\"3.5\"/>");
    const double share = 100.0 / static_cast<double>(most);
    const int64_t held = node.held_bytes(), elsewhere = node.elsewhere_bytes();
    std::string output;
    for (const std::string& one : node.outputs) output += (output.empty() ? "" : ", ") + escaped(one);
    rows += element(
        "div",
        join("class=\"node\" data-n=\"", node.number, "\" title=\"#", node.number, " ", escaped(node.op), "&#10;",
             escaped(node.module), "&#10;out ", output, parameters_of(node), "&#10;", escaped(node.place), "\""),
        element("b", "", escaped(node.op)) + element("span", "class=\"dim\"", escaped(node.module)) +
            element("code", "", output) +
            share_bar(
                {{share * static_cast<double>(held), "k7"}, {share * static_cast<double>(elsewhere), "k7 late"}}) +
            element("span", "class=\"n\"", held || elsewhere ? bytes_text(held + elsewhere) : ""));
  }
  const int height = static_cast<int>(tape.size()) * row_height;
  const std::string svg = element(
      "svg", join("class=\"arcs\" width=\"", rail, "\" height=\"", height, "\" aria-hidden=\"true\""), arcs + dots);
  return element("div", "class=\"tape\" id=\"tape\"", svg + element("div", "", rows));
}

}  // namespace

std::string report_kept(const StepProfile& profile) {
  const auto module_of = [](const TapeNode& node) { return node.module.empty() ? "(no module)" : node.module; };
  return element("div", "class=\"card\"",
                 "<h3>Kept for backward, by op</h3>" +
                     table(profile.tape, "op", [](const TapeNode& node) { return node.op; })) +
         element("div", "class=\"card\"",
                 "<h3>Kept for backward, by module</h3>" + table(profile.tape, "module", module_of));
}

std::string report_tape(const StepProfile& profile) {
  int64_t held = 0, elsewhere = 0;
  for (const TapeNode& node : profile.tape) {
    held += node.held_bytes();
    elsewhere += node.elsewhere_bytes();
  }
  std::vector<TapeNode> drawn = profile.tape;
  for (int64_t depth = 8; drawn.size() > most_nodes && depth > 0; --depth) drawn = fold(profile.tape, depth);
  const std::string folded =
      drawn.size() < profile.tape.size() ? join(", drawn folded by modules into ", drawn.size()) : "";
  const std::string head = element(
      "p", "",
      join("<b>", profile.tape.size(), "</b> nodes", folded, " hold <b>", bytes_text(held), "</b> for backward",
           elsewhere ? join(" and bring back <b>", bytes_text(elsewhere), "</b> (the paler part of a bar)") : "",
           ". What another node or the parameters hold anyway counts nothing."));
  return element("div", "class=\"card\"", "<h3>The tape</h3>" + head + picture(drawn));
}

}  // namespace cinta::train
