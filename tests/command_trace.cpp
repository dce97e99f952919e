// `cinta trace`, and trainings that show themselves elsewhere: --trace, --report_to tensorboard, bad input of both.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "command_helpers.h"

using namespace cinta::testing;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// How many slices of each name are in a timeline.
std::map<std::string, int64_t> slices_in(const std::string& path) {
  std::map<std::string, int64_t> out;
  const json timeline = json::parse(read_bytes(path));
  for (const json& event : timeline.at("traceEvents"))
    if (event.at("ph") == "X") ++out[event.at("name")];
  return out;
}

std::vector<std::string> event_files(const std::string& directory) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) out.push_back(entry.path());
  std::ranges::sort(out);
  return out;
}

int64_t count(const std::string& text, const std::string& part) {
  int64_t times = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++times;
  return times;
}

void check_refused(const Arguments& arguments, const std::string& part, Limits limits = {}) {
  const Finished finished = run_cinta(arguments, limits);
  INFO(finished.error);
  CHECK(finished.code == 2);
  CHECK(std::ranges::count(finished.error, '\n') == 1);
  CHECK(finished.error.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("cinta trace shows a step of a model", "[command]") {
  const Scratch scratch;
  for (const std::string model : {"tiny", "mlp"})
    for (const std::string device : {"cpu", "meta"}) {
      Arguments arguments{"trace", "--model", model, "--batch_size", "2", "--device", device, "--threads", "1"};
      if (model != "mlp") arguments = arguments + Arguments{"--sequence_length", "8", "--vocab_size", "100"};
      const std::string dot = scratch / "tape.dot", trace = scratch / "trace.json";
      const Finished drawn = run_cinta(arguments + Arguments{"--dot", dot, "--trace", trace});
      INFO(model << " on " << device << ": " << drawn.error);
      REQUIRE(drawn.code == 0);
      CHECK(drawn.out.empty());
      CHECK(read_bytes(dot).starts_with("digraph tape {"));
      const auto slices = slices_in(trace);
      for (const char* name : {"step", "backward", "optimizer", "cross_entropy", "cross_entropy backward"})
        CHECK(slices.at(name) == 1);
      const json tape = json::parse(run_cinta(arguments + Arguments{"--json"}).out);
      CHECK(count(read_bytes(dot), "fillcolor=") == static_cast<int64_t>(tape.at("nodes").size()));
      const Finished table = run_cinta(arguments);
      CHECK(count(table.out, "\n") == static_cast<int64_t>(tape.at("nodes").size()) + 2);
      CHECK(json::parse(run_cinta(arguments + Arguments{"--json", "--depth", "1"}).out).at("nodes").size() <
            tape.at("nodes").size());
    }
}

TEST_CASE("Graphviz draws the tape that cinta trace writes", "[command]") {
  if (std::system("dot -V > /dev/null 2>&1") != 0) {
    WARN("skipped: no dot; Debian has it in the package graphviz");
    return;
  }
  const Scratch scratch;
  const std::string dot = scratch / "tape.dot", svg = scratch / "tape.svg", said = scratch / "said";
  const Arguments common{"trace", "--batch_size", "2", "--dot", dot, "--threads", "1", "--json"};
  const Arguments tiny{"--model", "tiny", "--sequence_length", "8", "--vocab_size", "100"};
  for (const Arguments& more :
       {Arguments{"--model", "mlp"}, tiny, tiny + Arguments{"--gradient_checkpointing", "every:1"}}) {
    const Finished finished = run_cinta(common + more);
    INFO(finished.error);
    REQUIRE(finished.code == 0);
    const int status = std::system(("dot -Tsvg " + dot + " -o " + svg + " 2> " + said).c_str());
    INFO(read_bytes(said));
    REQUIRE(status == 0);
    const std::string drawn = read_bytes(svg);
    std::vector<std::string> expected;
    int64_t edges = 0;
    const json tape = json::parse(finished.out);
    for (const json& node : tape.at("nodes")) {
      const std::string name = "n" + std::to_string(node.at("number").get<int>());
      expected.push_back(name);
      for (const json& input : node.at("inputs")) {
        const int from = input.at("from");
        if (from == 0) continue;
        ++edges;
        CHECK(count(drawn, "<title>n" + std::to_string(from) + "&#45;&gt;" + name + "</title>") >= 1);
      }
    }
    for (const std::string& name : expected) CHECK(count(drawn, "<title>" + name + "</title>") == 1);
    CHECK(count(drawn, "class=\"node\"") == static_cast<int64_t>(expected.size()));
    CHECK(count(drawn, "class=\"edge\"") == edges);
    CHECK((count(drawn, "class=\"cluster\"") > 0) == (more.size() > tiny.size()));
    for (const char* text : {">tape</title>", " for backward", ">cross_entropy &#160;#"})
      CHECK(drawn.find(text) != std::string::npos);
  }
}

TEST_CASE("a training that is traced leaves what it leaves untraced, and a timeline of its steps", "[command]") {
  const Scratch scratch;
  REQUIRE(run_cinta(short_training(scratch / "plain")).code == 0);
  const std::string trace = scratch / "traced/trace.json";
  const Finished finished = run_cinta(short_training(scratch / "traced", {"--trace", trace, "--trace_steps", "3:5"}));
  INFO(finished.error);
  REQUIRE(finished.code == 0);
  for (const char* name : {"/model.safetensors", "/metrics.jsonl"})
    CHECK(read_bytes(scratch / "plain" + name) == read_bytes(scratch / "traced" + name));
  const auto slices = slices_in(trace);
  for (const char* name : {"step 3", "step 4", "step 5"}) CHECK(slices.at(name) == 1);
  for (const char* name : {"step 2", "step 6"}) CHECK(!slices.contains(name));
  for (const char* name : {"backward", "optimizer", "wait for data", "cross_entropy"}) CHECK(slices.at(name) == 3);
}

TEST_CASE("a run reported to TensorBoard has an event file, and another for each time it is resumed", "[command]") {
  const Scratch scratch;
  const std::string directory = scratch / "run";
  REQUIRE(run_cinta(short_training(directory, {"--report_to", "jsonl,tensorboard"})).code == 0);
  REQUIRE(event_files(directory).size() == 1);
  const std::string events = read_bytes(event_files(directory)[0]);
  CHECK(count(events, "train/loss") == 4);
  CHECK(count(events, "train/epoch") == 4);
  CHECK(count(events, "eval/accuracy") == 1);
  CHECK(count(events, "eval/epoch") == 1);

  // nothing is left to do
  REQUIRE(run_cinta(short_training(directory, {"--report_to", "tensorboard", "--resume"})).code == 0);
  REQUIRE(event_files(directory).size() == 2);
  CHECK(read_bytes(event_files(directory)[0]) == events);
  CHECK(count(read_bytes(event_files(directory)[1]), "loss") == 0);
  REQUIRE(run_cinta(short_training(directory, {"--report_to", "tensorboard", "--overwrite"})).code == 0);
  CHECK(event_files(directory).size() == 1);
  REQUIRE(run_cinta(short_training(scratch / "none")).code == 0);
  CHECK(event_files(scratch / "none").empty());
}

TEST_CASE("reports that cannot be made are refused", "[command]") {
  const Scratch scratch;
  const std::string directory = scratch / "run", file = scratch / "trace.json";
  check_refused(short_training(directory, {"--report_to", "jsonl,wandb"}), "given 'jsonl,wandb'");
  for (const char* steps : {"0:3", "5:4", "a:b", "3:", ":3", "1:2:3"})
    check_refused(short_training(directory, {"--trace", file, std::string("--trace_steps=") + steps}), "FIRST:LAST");
  CHECK(!fs::exists(directory));
  check_refused(short_training(directory, {"--trace", file, "--trace_steps", "21:22"}), "whose last is 20");
  check_refused(short_training(directory, {"--trace", scratch / "no/trace.json"}), "no/.trace.json");
  check_refused(short_training(directory, {"--trace", scratch.path()}), "is a directory");
  CHECK(!fs::exists(directory + "/model.safetensors"));
  REQUIRE(run_cinta(short_training(directory)).code == 0);
  check_refused(short_training(directory, {"--trace", file, "--resume"}), "has done 20");
  CHECK(!fs::exists(file));

  check_refused({"trace", "--model", "huge"}, "huge");
  check_refused({"trace", "--device", "moon"}, "moon");
  check_refused({"trace", "--batch_size", "0"}, "at least 1");
  check_refused({"trace", "--model", "mlp", "--gradient_checkpointing", "sqrt"}, "--gradient_checkpointing sqrt");
  check_refused({"trace", "--gradient_checkpointing", "all"}, "given 'all'");
  for (const char* option : {"--dot", "--trace"})
    check_refused({"trace", "--model", "mlp", "--threads", "1", option, scratch / "no/file"}, "no/.file");
}
