// `cinta train bert` from outside: pairs of segments, and tokens kept for the next run.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command_helpers.h"

using namespace cinta::testing;
namespace fs = std::filesystem;

namespace {

Arguments bert(const std::string& data, const std::string& directory, const Arguments& more,
               const std::string& length = "17") {
  return Arguments{"train",        "bert", "--data",       data, "--output_dir", directory, "--sequence_length", length,
                   "--vocab_size", "160",  "--batch_size", "2",  "--max_steps",  "6",       "--logging_steps",   "2",
                   "--threads",    "1"} +
         more;
}

}  // namespace

TEST_CASE("a BERT is pre-trained with both heads and used further", "[command]") {
  const Scratch scratch;
  const std::string text = write_texts(scratch, "text", "value_"), model = scratch / "run";
  const Finished finished = run_cinta(bert(text, model, {"--next_sentence", "--quiet", "--save_steps", "3"}));
  INFO(finished.error);
  REQUIRE(finished.code == 0);
  CHECK_THAT(finished.out, Catch::Contains("next sentence") && Catch::Contains("by chance 50 %"));
  const auto config = nlohmann::json::parse(read_bytes(model + "/config.json"));
  CHECK(config["architectures"] == nlohmann::json{"BertForPreTraining"});
  CHECK(holds(model + "/model.safetensors", "cls.seq_relationship.weight"));
  CHECK(holds(model + "/metrics.jsonl", "eval_next_sentence_accuracy"));

  const Finished scores = run_cinta({"eval", "--model", model, "--data", text, "--json"});
  INFO(scores.error);
  REQUIRE(scores.code == 0);
  const auto numbers = nlohmann::json::parse(scores.out);
  CHECK(numbers["eval_loss"].get<double>() ==
        Approx(numbers["eval_masked_loss"].get<double>() + numbers["eval_next_sentence_loss"].get<double>()));
  const Finished filled = run_cinta({"fill", "int [MASK] = [MASK];", "--model", model, "--top", "2", "--json"});
  INFO(filled.error);
  REQUIRE(filled.code == 0);
  const auto masks = nlohmann::json::parse(filled.out)["masks"];
  REQUIRE(masks.size() == 2);
  REQUIRE(masks[1].size() == 2);
  CHECK(masks[1][0]["probability"].get<double>() >= masks[1][1]["probability"].get<double>());

  write_bytes(scratch / "lines.csv", "text,label\nint a;,0\nfloat b;,1\nint c;,0\nfloat d;,1\nint e;,0\nfloat f;,1\n");
  const Finished tuned =
      run_cinta({"train", "--task", "classify", "--data", scratch / "lines.csv", "--model", model, "--output_dir",
                 scratch / "lines", "--max_steps", "2", "--threads", "1", "--quiet", "--json"});
  INFO(tuned.error);
  REQUIRE(tuned.code == 0);
  const auto result = nlohmann::json::parse(tuned.out);
  CHECK(result["state"] == "complete");
  CHECK(result["steps"] == 2);
  CHECK(result["eval_accuracy"].is_number());
  CHECK(fs::exists(result["checkpoint"].get<std::string>()));

  const std::string whole = read_bytes(model + "/model.safetensors"), log = read_bytes(model + "/metrics.jsonl");
  fs::remove_all(model + "/checkpoint-6");
  REQUIRE(run_cinta(bert(text, model, {"--next_sentence", "--quiet", "--save_steps", "3", "--resume"})).code == 0);
  CHECK(read_bytes(model + "/model.safetensors") == whole);
  CHECK(read_bytes(model + "/metrics.jsonl") == log);
}

TEST_CASE("a BERT trained on another device fills its lines there", "[command]") {
  const Scratch scratch;
  const Finished finished =
      run_cinta(bert(write_texts(scratch, "text", "value_"), scratch / "run", {"--device", "reference"}, "12"));
  INFO(finished.error);
  CHECK(finished.code == 0);
  CHECK(fs::exists(scratch / "run/model.safetensors"));
}

TEST_CASE("pairs that cannot be made are refused", "[command]") {
  const Scratch scratch;
  const std::string text = write_texts(scratch, "text", "value_"), model = scratch / "run";
  check_refused(bert(text, model, {"--next_sentence", "--quiet"}, "4"), {"at least 5, given 4"});
  check_refused(bert(text, model, {"--next_sentence", "--quiet"}, "4001"),
                {"the text to train on", "nothing to follow"});
  CHECK(!fs::exists(model));
}

TEST_CASE("a run does not write among the texts that it reads", "[command]") {
  const Scratch scratch;
  const std::string text = write_texts(scratch, "text", "value_");
  const std::vector<std::string> before = {"0.txt", "1.txt", "2.txt", "3.txt", "4.txt", "5.txt", "6.txt", "7.txt"};
  fs::create_directory_symlink(text, scratch / "link");
  for (const std::string& folder : {text, text + "/", scratch / "link", text + "/../text"})
    for (const std::string& inside : {text, text + "/run", scratch / "link/runs/1"}) {
      check_refused(bert(folder, inside, {"--quiet"}),
                    {"--output_dir " + inside + " lies in the folder --data " + folder, "outside of it"});
      check_refused(bert(folder, scratch / "run", {"--quiet", "--trace", text + "/step.json"}), {"--trace " + text});
      check_refused(bert(folder, scratch / "run", {"--quiet", "--result", text + "/result.json"}),
                    {"--result " + text});
    }
  std::vector<std::string> after;
  for (const auto& [name, bytes] : contents(text)) after.push_back(name);
  CHECK(after == before);
  CHECK(run_cinta(bert(text, text + "_run", {"--quiet"})).code == 0);                    // beside it
  CHECK(run_cinta(bert(text + "/0.txt", text + "/run", {"--quiet"})).code == 0);         // one file is one text
  CHECK(run_cinta(bert(text, text + "/run", {"--quiet", "--fast_dev_run"})).code == 0);  // which writes nothing
}

TEST_CASE("a second training takes the tokens that the first one kept, and ends with the same bits", "[command]") {
  const Scratch scratch;
  const std::string text = write_texts(scratch, "text", "value_"), cache = scratch / "cache";
  const auto run = [&](const std::string& name, const std::string& directory) {
    const Finished finished = run_cinta(bert(text, scratch / name, {"--cache_dir", directory}));
    INFO(finished.error);
    REQUIRE(finished.code == 0);
    return finished.error;
  };
  CHECK_THAT(run("first", cache), Catch::Contains("tokens kept in " + cache));
  CHECK_THAT(run("second", cache), Catch::Contains("tokens from " + cache));
  CHECK_THAT(run("none", "none"), !Catch::Contains("tokens kept"));
  for (const char* name : {"/model.safetensors", "/metrics.jsonl"}) {
    CHECK(read_bytes(scratch / "first" + name) == read_bytes(scratch / "second" + name));
    CHECK(read_bytes(scratch / "first" + name) == read_bytes(scratch / "none" + name));
  }
}

TEST_CASE("what comes of a training is one object for programs, and one for each seed", "[command]") {
  const Scratch scratch;
  const Finished finished = run_cinta(short_training(scratch / "run", {"--seeds", "2", "--json"}));
  REQUIRE(finished.code == 0);
  std::vector<nlohmann::json> lines;
  std::istringstream text(finished.out);
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  REQUIRE(lines.size() == 3);
  const std::string help = run_cinta({"train", "mlp", "--help"}).out;
  CHECK(help.find("as one object; of --seeds as one a line, and") != std::string::npos);
  CHECK(lines[0]["seed"] == 0);
  CHECK(lines[1]["output_dir"] == scratch / "run/seed-1");
  CHECK(lines[2]["mean_eval_accuracy"].get<double>() ==
        Approx((lines[0]["eval_accuracy"].get<double>() + lines[1]["eval_accuracy"].get<double>()) / 2));
  check_refused({"train", "--task", "cook", "--data", "generated"}, {"--task: there is no task 'cook'; there are mlp"});
  const Finished config = run_cinta({"config", "train", "--task", "mlp", "--learning_rate", "0.5"});
  CHECK(config.out == run_cinta({"config", "train", "mlp", "--learning_rate", "0.5"}).out);
  CHECK(config.out.find("learning_rate") != std::string::npos);
  write_bytes(scratch / "space.json",
              R"({"speed": {"name": "FloatDistribution", "attributes": {"low": 1, "high": 2}}})");
  check_refused({"tune", "--space", scratch / "space.json", "--output_dir", scratch / "search", "--", "train", "--data",
                 "x", "--task=mlp"},
                {"'speed' is no option of mlp"});
  check_refused({"train", "--task"}, {"--task needs a value"});
}
