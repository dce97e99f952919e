// What is trained may be said by a file of settings, and the words of a command may stand behind its options.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "command_helpers.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

/// What `cinta config --json` shows for an option.
std::string value_of(const Arguments& arguments, const std::string& option) {
  const Finished finished = run_cinta(arguments);
  INFO(finished.error);
  REQUIRE(finished.code == 0);
  return nlohmann::json::parse(finished.out).at(option).at("value");
}

}  // namespace

TEST_CASE("a file of settings, a trial or a variable says what to train", "[command_task]") {
  const Scratch scratch;
  const std::string file = scratch / "run.json";
  write_bytes(file, R"({"task": "mlp", "data": "generated", "hidden": [8], "max_steps": 3, "threads": 1})");
  auto trains = [&](const Arguments& arguments) {
    const Finished finished = run_cinta(arguments + Arguments{"--output_dir", scratch / "run", "--overwrite"});
    INFO(finished.error);
    CHECK(finished.code == 0);
    CHECK(holds(scratch / "run/metrics.jsonl", "\"task\":\"mlp\""));
    std::filesystem::remove_all(scratch / "run");
  };
  trains({"train", "--config", file});
  trains({"train", "mlp", "--config", file});
  trains({"train", "--config", file, "--task=mlp"});
  trains({"train", "--params", file, "--result", scratch / "result.json"});
  trains({"--config", file, "train"});
  trains({"train", "--config", file, "mlp", "--quiet"});
  {
    const Variable config("CINTA_CONFIG", file.c_str());
    trains({"train"});
  }
  const Variable task("CINTA_TASK", "mlp");
  trains({"train", "--data", "generated", "--max_steps", "1", "--hidden", "8", "--threads", "1"});
  write_bytes(scratch / "space.json", R"({"seed": {"name": "IntDistribution", "attributes": {"low": 1, "high": 9}}})");
  CHECK(run_cinta({"tune", "--space", scratch / "space.json", "--sampler", "random", "--trials", "1", "--output_dir",
                   scratch / "search", "--", "train", "--config", file})
            .out.find("1 complete") != std::string::npos);
}

TEST_CASE("two places that name two things to train are refused, both named", "[command_task]") {
  const Scratch scratch;
  const std::string file = scratch / "run.json", other = scratch / "other.json";
  write_bytes(file, R"({"task": "mlp", "data": "generated"})");
  write_bytes(other, R"({"task": "bert"})");
  check_refused({"train", "bert", "--config", file},
                {file + " is about the task 'mlp'", "the command line names 'bert'"});
  check_refused({"train", "--task", "classify", "--config", file}, {file, "'mlp'", "--task names 'classify'"});
  check_refused({"train", "--config", file, "--params", other}, {file, "'mlp'", other + " names 'bert'"});
  check_refused({"config", "train", "bert", "--config", file}, {file, "'mlp'", "'bert'"});
  write_bytes(other, R"({"task": "mpl"})");
  check_refused({"train", "--config", other}, {other, "there is no task 'mpl'; there are mlp, bert"});
  write_bytes(other, R"({"task": ["mlp"]})");
  check_refused({"train", "--config", other}, {other, "task: found [\"mlp\"]"});
  write_bytes(other, R"({"seed": 1})");
  check_refused({"train", "--config", other}, {"train needs one of the commands mlp, bert, characters, classify"});
  check_refused({"train", "mlp", "--task"}, {"--task needs a value"});
  check_refused({"eval", "--config", file}, {"'task' is no option of eval"});
  // A variable is about every command, so a command's own word goes before.
  const Variable task("CINTA_TASK", "bert");
  CHECK(value_of({"config", "train", "mlp", "--json"}, "hidden") == "[128,64]");
}

TEST_CASE("the words of a command stand behind options, and behind config's own", "[command_task]") {
  const Scratch scratch;
  const std::string file = scratch / "run.json";
  write_bytes(file, R"({"hidden": [8]})");
  for (const Arguments& arguments :
       {Arguments{"config", "--config", file, "train", "mlp", "--json"},
        Arguments{"config", "--json", "train", "--config", file, "mlp"},
        Arguments{"config", "--json", "True", "train", "mlp", "--config", file},
        Arguments{"config", "train", "mlp", "--json", "1", "--config", file, "--print", "False"},
        Arguments{"config", "--data", "train", "train", "mlp", "--json=yes", "--config", file}})
    CHECK(value_of(arguments, "hidden") == "8");
  CHECK(run_cinta({"config", "train", "mlp", "--json", "False"}).out.starts_with("params "));
  CHECK(value_of({"config", "--json", "--sequence_length", "7"}, "sequence_length") == "7");
  check_refused({"config", "train", "mlp", "--json=maybe"}, {"--json=maybe"});
  check_refused({"config", "train", "mlp", "hidden"}, {"hidden"});
}

TEST_CASE("a flag takes every spelling of a truth", "[command_task]") {
  auto trained = [](const Arguments& more) {
    const Finished finished = run_cinta(
        Arguments{"train", "mlp", "--data", "generated", "--hidden", "4", "--threads", "1", "--output_dir", ""} + more);
    INFO(finished.error);
    CHECK(finished.code == 0);
    return finished;
  };
  for (const char* word : {"True", "true", "1", "yes", "TRUE"})
    CHECK(trained({"--quiet", word, "--fast_dev_run", word}).error.empty());
  for (const char* word : {"False", "false", "0", "no"})
    CHECK(!trained({"--quiet", word, "--fast_dev_run", "True"}).error.empty());
  const Variable quiet("CINTA_QUIET", "Yes");
  CHECK(trained({"--fast_dev_run", "2", "--json", "False"}).error.empty());
}
