// The tape as a graph: the ops of a forward in order, who gave what to whom, and what each holds for backward.
#include "cinta/train/tape_graph.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "bert_helpers.h"
#include "cinta/autograd/checkpoint.h"
#include "cinta/core/context.h"
#include "cinta/models/mlp.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"

using namespace cinta;
using namespace cinta::testing;
using train::TapeNode;

namespace {

std::vector<TapeNode> tape_of_bert(Device device, const std::string& policy, Tensor& loss) {
  static std::vector<std::unique_ptr<models::BertForMaskedLM>> alive;  // the loss below looks into it
  auto& bert = *alive.emplace_back(std::make_unique<models::BertForMaskedLM>(small_config(), 3, device));
  bert.set_checkpoint_policy(autograd::parse_checkpoint_policy(policy));
  const Tensor ids = from_values(std::vector<int64_t>(36, 5), {3, 12}, device),
               labels = from_values(std::vector<int64_t>(36, 7), {36}, device);
  return train::record_tape([&] { loss = cross_entropy(bert({.ids = ids}), labels); }, bert.parameters());
}

int64_t held(const std::vector<TapeNode>& tape) {
  int64_t sum = 0;
  for (const TapeNode& node : tape) sum += node.held_bytes();
  return sum;
}
int64_t brought_back(const std::vector<TapeNode>& tape) {
  int64_t sum = 0;
  for (const TapeNode& node : tape) sum += node.elsewhere_bytes();
  return sum;
}

int64_t count(const std::string& text, const std::string& part) {
  int64_t times = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++times;
  return times;
}

/// Braces and brackets outside of strings close in order, strings end.
bool balanced(const std::string& dot) {
  std::string open;
  bool in_string = false;
  for (size_t i = 0; i < dot.size(); ++i) {
    const char c = dot[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '{' || c == '[')) {
      open += c;
    } else if (!in_string && (c == '}' || c == ']')) {
      if (open.empty() || open.back() != (c == '}' ? '{' : '[')) return false;
      open.pop_back();
    }
  }
  return open.empty() && !in_string;
}

}  // namespace

TEST_CASE("the tape of a perceptron, node by node", "[tape_graph]") {
  const models::Mlp mlp({6, 5, 4});
  const Tensor x = from_values(std::vector<float>(18, 0.5f), {3, 6}),
               labels = from_values(std::vector<int64_t>{0, 1, 2}, {3});
  Tensor loss;
  const auto tape = train::record_tape([&] { loss = cross_entropy(mlp(x), labels, {.reduction = Reduction::sum}); },
                                       mlp.parameters());
  REQUIRE(tape.size() >= 3);
  for (size_t i = 0; i < tape.size(); ++i) CHECK(tape[i].number == i + 1);
  const TapeNode &first = tape[0], &second = tape[1], &entropy = tape[2];
  CHECK(first.op == "linear");
  CHECK(first.module == "mlp.layers.0");
  CHECK(first.place.starts_with("tape_graph.cpp:"));
  CHECK(first.outputs == std::vector<std::string>{"f32[3,5]"});
  REQUIRE(first.inputs.size() >= 2);
  CHECK(first.inputs[0].tensor == "f32[3,6]");
  CHECK(first.inputs[0].from == 0);
  CHECK(first.inputs[1].name == "layers.0.weight");
  CHECK(first.inputs[1].tensor == "f32[5,6]");
  CHECK(first.held_bytes() == x.storage()->bytes() + 4 * 3 * 5);  // its input, and what relu was given
  CHECK(second.inputs[0].from == 1);
  CHECK(second.held_bytes() == 4 * 3 * 5);
  CHECK(entropy.op == "cross_entropy");
  CHECK(entropy.inputs[0].from == 2);
}

TEST_CASE("what several nodes keep is held by the first of them, and weights by nobody", "[tape_graph]") {
  Tensor x = from_values(std::vector<float>(5, 0.5f), {5}), y;
  autograd::require_gradient(x);
  auto forward = [&] {
    const Tensor power = exp(x), square = power * power;
    y = square * x;
  };
  const auto tape = train::record_tape(forward, {{"x", x}});
  REQUIRE(tape.size() == 3);
  const int64_t bytes = x.storage()->bytes();
  CHECK(tape[0].held_bytes() == bytes);
  CHECK(tape[1].saved.size() == 2);
  CHECK(tape[1].held_bytes() == 0);  // its factors are the first's output
  CHECK(tape[2].saved.size() == 2);
  CHECK(tape[2].held_bytes() == bytes);  // one factor is a leaf
  CHECK(tape[2].inputs[1].name == "x");
}

TEST_CASE("the tape holds as many bytes as there are", "[tape_graph]") {
  for (const Device device : {cpu, meta}) {
    Tensor plain_loss, loss;
    const auto plain = tape_of_bert(device, "none", plain_loss), tape = tape_of_bert(device, "every:1", loss);
    REQUIRE(plain.size() == tape.size());
    CHECK(brought_back(plain) == 0);
    CHECK(held(plain) == held(tape) + brought_back(tape));
    CHECK(brought_back(tape) > held(plain) / 2);
    int segments = 0;
    for (const TapeNode& node : tape) {
      segments = std::max(segments, node.segment);
      const bool in_layer = node.module.starts_with("bert.encoder.layer.");
      CHECK((node.segment != 0) == in_layer);
      CHECK((node.segment ? node.held_bytes() : node.elsewhere_bytes()) == 0);
    }
    CHECK(segments == 2);

    // What the tape lets go is what it was said to hold, but for blocks rounded up in size.
    const int64_t before = memory_statistics(device).live_total;
    plain_loss = {};
    const int64_t freed = before - memory_statistics(device).live_total;
    CHECK(freed > held(plain) * 9 / 10);
    CHECK(freed < held(plain) * 13 / 10);
  }
}

TEST_CASE("ops are folded by the paths of their modules", "[tape_graph]") {
  Tensor loss;
  const auto tape = tape_of_bert(meta, "every:1", loss), folded = train::fold(tape, 4);
  std::vector<std::string> modules;
  for (const TapeNode& node : folded) modules.push_back(node.module);
  const std::vector<std::string> begin{"bert.embeddings", "bert.encoder.layer.0", "bert.encoder.layer.1"};
  REQUIRE(modules.size() > begin.size());
  CHECK(std::equal(begin.begin(), begin.end(), modules.begin()));
  CHECK(held(folded) == held(tape));
  CHECK(brought_back(folded) == brought_back(tape));
  CHECK(folded[2].segment == 2);
  const auto from_before = [&](const train::TapeInput& input) { return input.from == folded[1].number; };
  CHECK(std::ranges::count_if(folded[2].inputs, from_before) == 1);
  CHECK(train::fold(tape, 2)[1].module == "bert.encoder");
  CHECK(train::fold(tape, 2)[1].segment == 0);
  CHECK(train::fold(tape, 0).size() == tape.size());
}

TEST_CASE("pictures, tables and JSON of a tape are whole", "[tape_graph]") {
  Tensor loss;
  const auto tape = tape_of_bert(cpu, "every:1", loss);
  const std::string dot = train::tape_dot(tape, "a \"name\" \\ {");
  CHECK(dot.starts_with("digraph tape {\n"));
  CHECK(balanced(dot));
  CHECK_FALSE(balanced(dot + "}"));
  CHECK_FALSE(balanced("\"" + dot));
  CHECK(count(dot, "subgraph cluster_") == 2);
  CHECK(count(dot, "fillcolor=") == static_cast<int64_t>(tape.size()));
  int64_t edges = 0;
  for (const TapeNode& node : tape)
    edges += std::ranges::count_if(node.inputs, [](const train::TapeInput& input) { return input.from != 0; });
  CHECK(count(dot, " -> ") == edges);
  CHECK(edges >= static_cast<int64_t>(tape.size()) - 1);

  const nlohmann::json json = nlohmann::json::parse(train::tape_json(tape));
  REQUIRE(json.at("nodes").size() == tape.size());
  CHECK(json.at("held_bytes") == held(tape));
  CHECK(json.at("brought_back_bytes") == brought_back(tape));
  CHECK(json.at("nodes")[3].at("module") == tape[3].module);
  CHECK(count(train::tape_table(tape), "\n") == static_cast<int64_t>(tape.size()) + 2);
}
