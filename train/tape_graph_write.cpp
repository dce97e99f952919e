// The tape as a graph for Graphviz, a table and JSON.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cinta/train/readable.h"
#include "cinta/train/tape_graph.h"

namespace cinta::train {
namespace {

using Json = nlohmann::ordered_json;

struct Sums {
  explicit Sums(const std::vector<TapeNode>& tape) {
    for (const TapeNode& node : tape) {
      held += node.held_bytes();
      elsewhere += node.elsewhere_bytes();
      most = std::max(most, node.held_bytes());
    }
  }
  std::string text(size_t nodes) const {
    return join(nodes, nodes == 1 ? " node holds " : " nodes hold ", bytes_text(held), " for backward",
                elsewhere ? ", " + bytes_text(elsewhere) + " are brought back" : "");
  }
  int64_t held = 0, elsewhere = 0, most = 1;
};

/// A string of the graph language, whose backslashes begin escapes.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + '"';
}

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : between) + part;
  return out;
}

/// What stands in a node's box.
std::string label_of(const TapeNode& node) {
  std::string out = node.op + "  #" + std::to_string(node.number);
  if (!node.module.empty()) out += "\n" + node.module;
  out += "\n" + joined(node.outputs, ", ");
  int64_t parameters = 0;
  for (const TapeInput& input : node.inputs) {
    if (input.name.empty()) continue;
    if (++parameters <= 3) out += "\n" + input.name + " " + input.tensor;
  }
  if (parameters > 3) out += join("\nand ", parameters - 3, " parameters more");
  if (node.held_bytes()) out += "\nholds " + bytes_text(node.held_bytes());
  if (node.elsewhere_bytes()) out += "\nbrings back " + bytes_text(node.elsewhere_bytes());
  return out;
}

std::string box(const TapeNode& node, const Sums& sums) {
  const double share = static_cast<double>(node.held_bytes()) / static_cast<double>(sums.most);
  return join("n", node.number, " [label=", quoted(label_of(node)), ", fillcolor=\"0.000 ",
              node.held_bytes() ? 0.1 + 0.6 * share : 0.0, " 1.000\"];\n");
}

}  // namespace

std::string tape_dot(const std::vector<TapeNode>& tape, const std::string& title) {
  const Sums sums(tape);
  std::string out = "digraph tape {\n  label=" + quoted(title + ": " + sums.text(tape.size())) + ";\n";
  out += "  labelloc=t; fontname=\"sans-serif\"; nodesep=0.3; ranksep=0.3;\n";
  out += "  node [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\", fontsize=10];\n";
  out += "  edge [color=gray40, arrowsize=0.6];\n";
  std::map<int, std::vector<const TapeNode*>> segments;
  for (const TapeNode& node : tape) segments[node.segment].push_back(&node);
  for (const auto& [segment, nodes] : segments) {
    if (segment)
      out += join("  subgraph cluster_", segment, " {\n    label=\"checkpointed segment ", segment,
                  "\"; style=dashed; fontsize=10;\n");
    for (const TapeNode* node : nodes) out += (segment ? "    " : "  ") + box(*node, sums);
    if (segment) out += "  }\n";
  }
  for (const TapeNode& node : tape)
    for (const TapeInput& input : node.inputs)
      if (input.from) out += join("  n", input.from, " -> n", node.number, ";\n");
  return out + "}\n";
}

std::string tape_table(const std::vector<TapeNode>& tape) {
  const auto row = [](const std::string& number, std::string op, std::string module, std::string output,
                      const std::string& held, const std::string& back) {
    op.resize(std::max<size_t>(op.size(), 20), ' ');
    module.resize(std::max<size_t>(module.size(), 28), ' ');
    output.resize(std::max<size_t>(output.size(), 24), ' ');
    const auto right = [](const std::string& text, size_t width) {
      return std::string(width - std::min(width, text.size()), ' ') + text;
    };
    return join(right(number, 5), "  ", op, " ", module, " ", output, " ", right(held, 11), " ", right(back, 11), "\n");
  };
  std::string out = row("node", "op", "module", "output", "holds", "brings back");
  for (const TapeNode& node : tape)
    out += row(std::to_string(node.number), node.op, node.module, joined(node.outputs, ", "),
               bytes_text(node.held_bytes()), bytes_text(node.elsewhere_bytes()));
  return out + Sums(tape).text(tape.size()) + "\n";
}

std::string tape_json(const std::vector<TapeNode>& tape) {
  const Sums sums(tape);
  Json out{{"held_bytes", sums.held}, {"brought_back_bytes", sums.elsewhere}, {"nodes", Json::array()}};
  for (const TapeNode& node : tape) {
    Json inputs = Json::array(), saved = Json::array();
    for (const TapeInput& input : node.inputs)
      inputs.push_back({{"from", input.from}, {"parameter", input.name}, {"tensor", input.tensor}});
    for (const TapeSaved& one : node.saved)
      saved.push_back({{"tensor", one.tensor}, {"held_bytes", one.bytes}, {"brought_back_bytes", one.elsewhere}});
    out["nodes"].push_back({{"number", node.number},
                            {"op", node.op},
                            {"module", node.module},
                            {"at", node.place},
                            {"segment", node.segment},
                            {"inputs", inputs},
                            {"outputs", node.outputs},
                            {"saved", saved},
                            {"held_bytes", node.held_bytes()},
                            {"brought_back_bytes", node.elsewhere_bytes()}});
  }
  return out.dump(1) + "\n";
}

}  // namespace cinta::train
