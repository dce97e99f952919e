// `cinta tune` from outside, and what it rests on: the result of a training, and the request to give it up.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "command_helpers.h"
#include "svg.h"

using namespace cinta::testing;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* space = R"({
  "learning_rate": {"name": "FloatDistribution", "attributes": {"low": 1e-4, "high": 1e-1, "log": true, "step": null}},
  "weight_decay": {"name": "FloatDistribution", "attributes": {"low": 0, "high": 0.2, "step": 0.1}},
  "warmup_steps": {"name": "IntDistribution", "attributes": {"low": 0, "high": 3}},
  "hidden": {"name": "CategoricalDistribution", "attributes": {"choices": ["4", "6,4"]}}})";

Arguments digits_mlp(const std::string& steps, const Arguments& more = {}) {
  return Arguments{"train", "mlp", "--data", "generated", "--threads", "1", "--max_steps", steps, "--quiet"} + more;
}

/// A search in `directory` for the file scratch/space.json.
Arguments tune(const Scratch& scratch, const std::string& directory, const Arguments& options,
               const Arguments& training = digits_mlp("8")) {
  return Arguments{"tune",    "--space", scratch / "space.json", "--output_dir",
                   directory, "--json",  "--objective",          "eval_accuracy"} +
         options + Arguments{"--"} + training;
}

json read_json(const std::string& path) { return json::parse(read_bytes(path)); }

std::vector<json> lines_of(const std::string& path) {
  std::istringstream text(read_bytes(path));
  std::vector<json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

/// The trials in the order of the file, without the time that they took.
std::vector<json> trials_in(const std::string& directory) {
  std::vector<json> trials = lines_of(directory + "/trials.jsonl");
  for (json& trial : trials) trial.erase("seconds");
  return trials;
}

void wait_until(const Child& child, const std::function<bool()>& sign) {
  while (child.running() && !sign()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

void check_refused(const Arguments& arguments, const std::string& part, int code = 2) {
  const Finished finished = run_cinta(arguments);
  INFO(part << "\n" << finished.error);
  CHECK(finished.code == code);
  CHECK(finished.error.find(part) != std::string::npos);
}

/// A Python that has Optuna, or nothing.
std::string python_with_optuna() {
  const char* given = std::getenv("CINTA_PYTHON");
  const std::string python = given ? given : "python3";
  return std::system((python + " -c 'import optuna' > /dev/null 2>&1").c_str()) == 0 ? python : "";
}

}  // namespace

TEST_CASE("a training writes its result, and gives up with exit code 3 when asked to", "[command_tune]") {
  const Scratch scratch;
  const auto train = [&](const std::string& name, const std::string& steps, const Arguments& more = {}) {
    return digits_mlp(steps, Arguments{"--hidden", "4", "--logging_steps", "1", "--result", scratch / (name + ".json"),
                                       "--output_dir", scratch / name} +
                                 more);
  };
  REQUIRE(run_cinta(train("whole", "6", {"--metric_for_best_model", "accuracy"})).code == 0);
  const json whole = read_json(scratch / "whole.json");
  CHECK(whole["state"] == "complete");
  CHECK(whole["steps"] == 6);
  CHECK(whole["value"] == whole["evaluation"]["eval_accuracy"]);
  CHECK(whole["evaluation"]["eval_loss"] == lines_of(scratch / "whole/metrics.jsonl").back()["eval_loss"]);

  Finished finished;
  {
    Child child(train("pruned", "1000000"));
    wait_until(child, [&] { return holds(scratch / "pruned/metrics.jsonl", "\"step\":3,"); });
    write_bytes(scratch / "pruned/verdict", "prune 1\n");
    finished = child.wait();
  }
  INFO(finished.error);
  CHECK(finished.code == 3);
  const json pruned = read_json(scratch / "pruned.json");
  CHECK(pruned["state"] == "pruned");
  CHECK_FALSE(fs::exists(scratch / "pruned/verdict"));
  const json last = lines_of(scratch / "pruned/metrics.jsonl").back();
  CHECK(last["step"] == pruned["steps"]);
  CHECK(last["eval_loss"] == pruned["value"]);
  CHECK(fs::exists(scratch / "pruned/model.safetensors"));

  {
    Child child(train("stopped", "1000000"));
    wait_until(child, [&] { return holds(scratch / "stopped/metrics.jsonl", "\"step\":3,"); });
    child.send(SIGTERM);
    CHECK(child.wait().code == 128 + SIGTERM);
  }
  CHECK(read_json(scratch / "stopped.json")["state"] == "stopped");
  CHECK(read_json(scratch / "stopped.json")["value"].is_null());

  check_refused(digits_mlp("6", {"--result", scratch / "none/r.json", "--output_dir", scratch / "run"}),
                "there is no directory");
  check_refused(train("many", "6", {"--seeds", "2"}), "--result is that of one run");
  check_refused(train("metric", "6", {"--metric_for_best_model", "f1"}), "no 'eval_f1' to watch");
}

TEST_CASE("a random search: values of the space, the best trial, charts; it goes on and repeats nothing",
          "[command_tune]") {
  const Scratch scratch;
  write_bytes(scratch / "space.json", space);
  const Arguments random{"--sampler", "random", "--seed", "5", "--trials"};
  const Finished first = run_cinta(tune(scratch, scratch / "a", random + Arguments{"3"}));
  INFO(first.error);
  REQUIRE(first.code == 0);
  const auto trials = trials_in(scratch / "a");
  REQUIRE(trials.size() == 3);
  const json summary = json::parse(first.out);
  double best = 0;
  for (size_t i = 0; i < trials.size(); ++i) {
    const json& params = trials[i]["params"];
    CHECK(trials[i]["trial"] == i);
    CHECK(trials[i]["state"] == "complete");
    CHECK(params["learning_rate"] >= 1e-4);
    CHECK(params["learning_rate"] <= 1e-1);
    CHECK(std::set<double>{0, 0.1, 0.2}.contains(params["weight_decay"].get<double>()));
    CHECK((params["warmup_steps"] >= 0 && params["warmup_steps"] <= 3));
    CHECK((params["hidden"] == "4" || params["hidden"] == "6,4"));
    const std::string directory = scratch / ("a/trial-000" + std::to_string(i));
    CHECK(read_json(directory + "/trial.json") == params);
    CHECK(read_json(directory + "/result.json")["evaluation"]["eval_accuracy"] == trials[i]["objective"]);
    CHECK(lines_of(directory + "/metrics.jsonl").front()["learning_rate"] == params["learning_rate"]);
    best = std::max(best, trials[i]["objective"].get<double>());
  }
  CHECK(trials[0]["params"] != trials[1]["params"]);
  CHECK(summary["best"]["objective"] == best);
  CHECK(summary["complete"] == 3);
  for (const char* name :
       {"trials", "trials-learning_rate", "trials-weight_decay", "trials-warmup_steps", "trials-hidden"}) {
    INFO(name);
    const std::string svg = read_bytes(scratch / ("a/" + std::string(name) + ".svg"));
    CHECK(balanced(svg));
    CHECK(all_between(svg, "class=\"curve dots", "/>").size() == 2);  // the legend's and the points
  }
  CHECK(holds(scratch / "a/trials-hidden.svg", ">6,4</text>"));

  const auto written = fs::last_write_time(scratch / "a/trial-0001/result.json");
  REQUIRE(run_cinta(tune(scratch, scratch / "a", random + Arguments{"4"})).code == 0);
  CHECK(fs::last_write_time(scratch / "a/trial-0001/result.json") == written);
  CHECK(trials_in(scratch / "a").size() == 4);
  REQUIRE(run_cinta(tune(scratch, scratch / "b", random + Arguments{"4"})).code == 0);
  CHECK(trials_in(scratch / "a") == trials_in(scratch / "b"));
  check_refused(tune(scratch, scratch / "a", {"--sampler", "random", "--seed", "6"}), "seed 6, begun with 5");
}

TEST_CASE("a grid has every combination once", "[command_tune]") {
  const Scratch scratch;
  write_bytes(scratch / "space.json", R"({
    "learning_rate": {"name": "FloatDistribution", "attributes": {"low": 0.001, "high": 0.1, "log": true}},
    "hidden": {"name": "CategoricalDistribution", "attributes": {"choices": ["4", "6,4"]}}})");
  REQUIRE(
      run_cinta(tune(scratch, scratch / "grid", {"--sampler", "grid", "--grid_points", "3"}, digits_mlp("1"))).code ==
      0);
  std::set<std::pair<int, std::string>> seen;  // the rate by its exponent
  for (const json& trial : trials_in(scratch / "grid")) {
    const double exponent = std::log10(trial["params"]["learning_rate"].get<double>());
    CHECK(exponent == Approx(std::round(exponent)));
    seen.emplace(static_cast<int>(std::round(exponent)), trial["params"]["hidden"]);
  }
  CHECK(seen ==
        std::set<std::pair<int, std::string>>{{-3, "4"}, {-2, "4"}, {-1, "4"}, {-3, "6,4"}, {-2, "6,4"}, {-1, "6,4"}});
  CHECK(trials_in(scratch / "grid").size() == 6);
}

TEST_CASE("a search that is killed goes on where it was, one that is stopped says so", "[command_tune]") {
  const Scratch scratch;
  write_bytes(scratch / "space.json", space);
  const Arguments options{"--sampler", "random", "--trials", "3"};
  const Arguments training =
      digits_mlp("400", {"--logging_steps", "20", "--save_steps", "20", "--save_total_limit", "2"});
  REQUIRE(run_cinta(tune(scratch, scratch / "whole", options, training)).code == 0);
  const auto interrupt = [&](const std::string& directory, int signal) {
    Child child(tune(scratch, directory, options, training));
    wait_until(child, [&] { return holds(directory + "/trial-0001/metrics.jsonl", "\"step\":60,"); });
    child.send(signal);
    return child.wait();
  };
  for (const int signal : {SIGKILL, SIGINT}) {
    const std::string directory = scratch / std::to_string(signal);
    const Finished stopped = interrupt(directory, signal);
    CHECK(stopped.code == 128 + signal);
    if (signal == SIGINT)
      CHECK(stopped.error.find("stopped after 1 trials; the same command goes on") != stopped.error.npos);
    CHECK(trials_in(directory).size() == 1);
    const auto written = fs::last_write_time(directory + "/trial-0000/result.json");
    const Finished finished = run_cinta(tune(scratch, directory, options, training));
    INFO(finished.error);
    REQUIRE(finished.code == 0);
    CHECK(fs::last_write_time(directory + "/trial-0000/result.json") == written);
    CHECK(trials_in(directory) == trials_in(scratch / "whole"));
    for (const char* name : {"/trial-0001/model.safetensors", "/trial-0001/metrics.jsonl"})
      CHECK(read_bytes(directory + name) == read_bytes(scratch / "whole" + name));
  }
}

TEST_CASE("trials that fail are written down; a search in which all fail is an error", "[command_tune]") {
  const Scratch scratch;
  write_bytes(scratch / "space.json",
              R"({"adam_beta1": {"name": "CategoricalDistribution", "attributes": {"choices": [0.9, 2]}}})");
  const Finished some = run_cinta(tune(scratch, scratch / "some", {"--sampler", "grid"}, digits_mlp("2")));
  INFO(some.error);
  CHECK(some.code == 0);
  CHECK(json::parse(some.out)["failed"] == 1);
  for (const json& trial : trials_in(scratch / "some"))
    if (trial["state"] == "failed") CHECK(trial["error"].get<std::string>().find("beta") != std::string::npos);
  check_refused(tune(scratch, scratch / "all", {"--sampler", "grid"}, digits_mlp("2", {"--adam_beta2", "7"})),
                "all 2 trials failed; the last one: cinta: ");
  check_refused(Arguments{"tune", "--space", scratch / "space.json", "--output_dir", scratch / "other", "--sampler",
                          "grid", "--objective", "eval_f1", "--"} +
                    digits_mlp("2"),
                "the evaluation has no 'eval_f1', so no trial would count: {\"eval_accuracy\":");
}

TEST_CASE("a space or a command that is wrong is refused before the first trial", "[command_tune]") {
  const Scratch scratch;
  const Arguments random{"--sampler", "random", "--trials", "1"};
  const std::string rate = R"({"learning_rate": {"name": "FloatDistribution", "attributes": )";
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"[1]", "is not a JSON object"},
           {"{}", "is not a JSON object of at least one option"},
           {R"({"learning_rate": 0.1})", "learning_rate: expected {\"name\": .., \"attributes\": {..}}, found 0.1"},
           {R"({"learning_rate": {"name": "Normal", "attributes": {}}})", "found 'Normal'"},
           {rate + R"({"low": 1}}})", "high is a number, found null"},
           {rate + R"({"low": 2, "high": 1}}})", "low 2 is above high 1"},
           {rate + R"({"low": 0, "high": 1, "log": true}}})", "a logarithmic scale begins above 0"},
           {rate + R"({"low": 1, "high": 2, "log": true, "step": 1}}})", "log and step exclude each other"},
           {rate + R"({"low": 1, "high": 2, "q": 1}}})", "unknown attribute 'q'"},
           {R"({"max_steps": {"name": "IntDistribution", "attributes": {"low": 0.5, "high": 2}}})",
            "0.5 is no whole number"},
           {R"({"hidden": {"name": "CategoricalDistribution", "attributes": {"choices": []}}})", "at least one value"},
           {R"({"hidden": {"name": "CategoricalDistribution", "attributes": {"choices": [[1, 2]]}}})",
            "a choice is a number, a text, true or false, found [1,2]"},
           {R"({"lerning_rate": {"name": "FloatDistribution", "attributes": {"low": 0, "high": 1}}})",
            "'lerning_rate' is no option of mlp; the nearest is 'learning_rate'"},
           {rate + R"({"low": -1e308, "high": 1e308}}})", "lie too far apart"},
           {rate + R"({"low": 0, "high": 1, "step": 1e-30}}})", "lie too far apart"},
           {R"({"fast_dev_run": {"name": "CategoricalDistribution", "attributes": {"choices": [1]}}})",
            "fast_dev_run is not to be chosen"},
           {R"({"config": {"name": "CategoricalDistribution", "attributes": {"choices": ["a"]}}})",
            "config is not to be chosen"},
           {R"({"batch_size": {"name": "IntDistribution", "attributes": {"low": 1, "high": 2}},
                "per_device_train_batch_size": {"name": "IntDistribution", "attributes": {"low": 1, "high": 2}}})",
            "batch_size and per_device_train_batch_size are one option"},
           {R"({"max_steps": {"name": "IntDistribution", "attributes": {"low": 1, "high": 2}}})",
            "max_steps is to be chosen, but the command gives it"}}) {
    write_bytes(scratch / "space.json", text);
    check_refused(tune(scratch, scratch / "search", random), part);
  }
  write_bytes(scratch / "space.json", space);
  check_refused(tune(scratch, scratch / "search", random, {}), "behind -- stands what all trials share");
  check_refused(tune(scratch, scratch / "search", random, {"eval"}), "behind -- stands what all trials share");
  check_refused(tune(scratch, scratch / "search", random, digits_mlp("2", {"--output_dir", "x"})),
                "--output_dir is given");
  write_bytes(scratch / "try.json", R"({"fast_dev_run": 1})");
  check_refused(tune(scratch, scratch / "search", random, digits_mlp("2", {"--config", scratch / "try.json"})),
                "--fast_dev_run is given to the trials by the search, not by settings");
  check_refused(tune(scratch, scratch / "search", {"--pruner", "asha"}), "needs evaluations on the way");
  check_refused({"tune", "--space", scratch / "none.json", "--", "train", "mlp"}, "none.json: cannot be opened");
  CHECK_FALSE(fs::exists(scratch / "search"));
}

TEST_CASE("a folder of something else, or with damaged files, is refused and kept", "[command_tune]") {
  const Scratch scratch;
  write_bytes(scratch / "space.json", R"({"weight_decay": {"name": "FloatDistribution", "attributes":
                                          {"low": 0, "high": 1}}})");
  const std::string directory = scratch / "search", trial = directory + "/trial-0000/";
  const auto command = [&](const std::string& trials) {
    return tune(scratch, directory, {"--sampler", "random", "--trials", trials}, digits_mlp("2"));
  };
  const auto refused = [&](const std::string& path, const std::string& text, const std::string& part) {
    const std::string good = fs::exists(path) ? read_bytes(path) : "";
    write_bytes(path, text);
    check_refused(command("2"), part);
    CHECK(read_bytes(path) == text);
    good.empty() ? void(fs::remove(path)) : write_bytes(path, good);
  };
  fs::create_directory(directory);
  refused(directory + "/trials.jsonl", "my notes", "search: holds trials.jsonl, but no search");
  refused(directory + "/metrics.jsonl", "{}\n", "search: holds metrics.jsonl, but no search");
  refused(directory + "/search.json", R"({"mine": 1})", "search.json: describes no search");
  REQUIRE(run_cinta(command("1")).code == 0);

  const std::string line = R"({"trial":0,"state":"complete","objective":1,"params":{"weight_decay":0.5},"steps":2,)"
                           R"("epoch":1,"seconds":1,"values":[],"exit_code":0})";
  const std::string trials = directory + "/trials.jsonl", place = "trials.jsonl: line 1: is no trial of this search: ";
  refused(trials, replaced(line, "0.5", "\"x\"") + "\n", place + "its params are {\"weight_decay\":\"x\"}");
  refused(trials, replaced(line, "{\"weight_decay\":0.5}", "5") + "\n", place + "its params are 5");
  refused(trials, replaced(line, ":0,", ":-7,") + "\n", place + "its number is -7");
  refused(trials, replaced(line, "complete", "bogus") + "\n", place + "its state is \"bogus\"");
  refused(trials, replaced(line, "\"steps\":2,", "") + "\n", place);
  refused(trials, line + "\n" + line + "\n", "line 2: is no trial of this search: there is another trial-0000");

  const std::string kept = read_bytes(trials);
  fs::remove(trials);
  refused(trial + "result.json", R"({"state": "bogus"})", "result.json: is no result of a training");
  refused(trial + "result.json", R"({"state": "complete"})", "result.json: is no result of a training");
  refused(trial + "trial.json", "[]", "trial.json: is of no trial of this search: []");
  const std::string metrics = read_bytes(trial + "metrics.jsonl");
  write_bytes(trial + "metrics.jsonl", metrics + R"({"step": "x", "eval_accuracy": 1})" + "\n");
  CHECK(run_cinta(command("1")).code == 0);
  CHECK(lines_of(trials).size() == 1);
  write_bytes(trials, kept);

  fs::remove_all(directory + "/trial-0000");
  check_refused(tune(scratch, directory, {"--sampler", "random", "--seed", "6"}, digits_mlp("2")),
                "seed 6, begun with 0");
}

TEST_CASE("without Python or Optuna the search says what to install", "[command_tune]") {
  const Scratch scratch;
  write_bytes(scratch / "space.json", space);
  check_refused(tune(scratch, scratch / "search", {"--python", scratch / "none"}), "apt-get install python3-optuna");
  write_bytes(scratch / "bare", "#!/bin/sh\nexec python3 -I -S \"$@\"\n");  // sees no installed package
  fs::permissions(scratch / "bare", fs::perms::owner_all);
  if (std::system((scratch / "bare -c pass 2> /dev/null").c_str()) == 0)
    check_refused(tune(scratch, scratch / "search", {"--python", scratch / "bare"}), "No module named 'optuna'");
  CHECK(run_cinta(tune(scratch, scratch / "search", {"--sampler", "random", "--trials", "1"})).code == 0);
}

TEST_CASE("Optuna chooses, and gives up what falls behind", "[command_tune]") {
  const std::string python = python_with_optuna();
  if (python.empty()) {
    WARN("skipped: no Python that has Optuna; CINTA_PYTHON may name one");
    return;
  }
  const Scratch scratch;
  write_bytes(
      scratch / "space.json",
      R"({"learning_rate": {"name": "FloatDistribution", "attributes": {"low": 1e-7, "high": 1e-1, "log": true}}})");
  const Arguments options{"--python", python, "--pruner", "asha", "--trials", "6"};
  const Arguments training = digits_mlp("900", {"--eval_steps", "30", "--hidden", "8"});
  const Finished finished = run_cinta(tune(scratch, scratch / "search", options, training));
  INFO(finished.error);
  REQUIRE(finished.code == 0);
  const json summary = json::parse(finished.out);
  CHECK(summary["trials"] == 6);
  CHECK(summary["failed"] == 0);
  CHECK(summary["pruned"] >= 1);
  for (const json& trial : trials_in(scratch / "search")) {
    CHECK(trial["exit_code"] == (trial["state"] == "pruned" ? 3 : 0));
    CHECK((trial["steps"] == 900) == (trial["state"] == "complete"));
    CHECK(trial["steps"] == 30 * trial["values"].size());  // it ended at the evaluation that was judged
  }

  const Arguments again = tune(scratch, scratch / "again", options, training);
  {
    Child child(again);
    wait_until(child, [&] { return holds(scratch / "again/trial-0001/metrics.jsonl", "\"eval_loss\""); });
    child.send(SIGKILL);
    child.wait();
  }
  REQUIRE(run_cinta(again).code == 0);
  CHECK(trials_in(scratch / "again") == trials_in(scratch / "search"));
}

TEST_CASE("Optuna's storage holds the trials", "[command_tune]") {
  const std::string python = python_with_optuna();
  if (python.empty()) {
    WARN("skipped: no Python that has Optuna; CINTA_PYTHON may name one");
    return;
  }
  const Scratch scratch;
  write_bytes(scratch / "space.json", space);
  const std::string storage = "sqlite:///" + (scratch / "study.db");
  REQUIRE(
      run_cinta(tune(scratch, scratch / "search", {"--python", python, "--trials", "2", "--storage", storage})).code ==
      0);
  const std::string study = "import optuna; t = optuna.load_study(study_name='search', storage='" + storage +
                            "').trials; print([x.value for x in t], [x.params for x in t])";
  REQUIRE(std::system((python + " -c \"" + study + "\" > " + (scratch / "seen")).c_str()) == 0);
  std::string expected = read_bytes(scratch / "seen");
  std::ranges::replace(expected, '\'', '"');
  const auto trials = trials_in(scratch / "search");
  for (const json& trial : trials) {
    CHECK(expected.find(trial["objective"].dump()) != expected.npos);
    CHECK(expected.find("\"hidden\": " + trial["params"]["hidden"].dump()) != expected.npos);
  }
}
