// What is trained may be said by a file of settings, and the words of a command may stand behind its options.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "command_helpers.h"
#include "setting_text.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

/// What `cinta config --json` shows for an option.
std::string value_of(const Arguments& arguments, const std::string& option) {
  const Finished finished = run_cinta(arguments);
  INFO(finished.error);
  REQUIRE(finished.code == 0);
  return setting_text(nlohmann::json::parse(finished.out).at(option));
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
  check_refused({"train", "--config", other},
                {other, "there is no task 'mpl'; the nearest is 'mlp', there are mlp, bert"});
  write_bytes(other, R"({"task": ["mlp"]})");
  check_refused({"train", "--config", other}, {other, "task: found [\"mlp\"]"});
  write_bytes(other, R"({"seed": 1})");
  check_refused({"train", "--config", other}, {"train needs one of the commands mlp, bert, characters, classify"});
  check_refused({"train", "mlp", "--task"}, {"--task needs a value"});
  check_refused({"train", "mlp", "--config"}, {"--config needs a value"});
  check_refused({"train", "mlp", "--config="}, {"--config needs a value"});
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
        Arguments{"config", "--fast_dev_run", "3", "train", "mlp", "--json", "--config", file},
        Arguments{"config", "--fast_dev_run", "train", "--quiet", "True", "mlp", "--json", "--config", file},
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

TEST_CASE("config shows what options come to and what that follows from", "[command_task]") {
  struct Shown {
    Arguments arguments;
    std::string option, value, from;
  };
  const Scratch scratch;
  const std::string file = scratch / "run.json";
  write_bytes(file, R"({"num_train_epochs": 2, "warmup_steps": 0.2})");
  const std::string later = "known once the data is read";
  const Arguments mlp{"train", "mlp"}, bert{"train", "bert"}, classify{"train", "classify"};
  for (const Shown& one : std::vector<Shown>{
           {mlp, "max_steps", later, "derived from num_train_epochs"},
           {mlp, "quiet", "false", "default"},
           {mlp, "loss_scale", "1", "derived from precision"},
           {mlp + Arguments{"--loss_scale", "64"}, "loss_scale", "64", "command line"},
           {mlp + Arguments{"--precision", "fp16"}, "loss_scale",
            "dynamic:initial=65536,growth=2,backoff=0.5,interval=2000,hysteresis=1,most_skips=100",
            "derived from precision"},
           {mlp + Arguments{"--config", file}, "warmup_steps", later, "derived from max_steps"},
           {mlp + Arguments{"--config", file}, "num_train_epochs", "2", file},
           {mlp + Arguments{"--config", file, "--max_steps", "50"}, "num_train_epochs", "unused",
            "derived from max_steps"},
           {mlp + Arguments{"--config", file, "--max_steps", "50"}, "warmup_steps", "10", "derived from max_steps"},
           {mlp + Arguments{"--max_steps", "50", "--warmup_steps", "7"}, "warmup_steps", "7", "command line"},
           {mlp + Arguments{"--max_steps", "-1", "--num_train_epochs", "3"}, "max_steps", later,
            "derived from num_train_epochs"},
           {bert, "max_steps", "5000", "default"},
           {bert + Arguments{"--max_steps", "-1"}, "max_steps", "5000", "default"},
           {bert + Arguments{"--max_steps", "300"}, "warmup_steps", "30", "derived from max_steps"},
           {bert + Arguments{"--num_train_epochs", "3"}, "warmup_steps", later, "derived from max_steps"},
           {bert + Arguments{"--size", "base"}, "initializer_range", "0.02", "derived from size"},
           {bert + Arguments{"--eval_strategy", "steps"}, "eval_steps", "10", "derived from logging_steps"},
           {bert + Arguments{"--save_strategy", "steps", "--output_dir", "x"}, "save_steps", "500",
            "derived from save_strategy"},
           {bert + Arguments{"--fast_dev_run"}, "max_steps", "1", "derived from fast_dev_run"},
           {bert + Arguments{"--fast_dev_run"}, "cache_dir", "", "derived from fast_dev_run"},
           {bert + Arguments{"--metric_for_best_model", "masked_accuracy", "--eval_steps", "5"},
            "metric_for_best_model", "eval_masked_accuracy", "command line"},
           {bert + Arguments{"--metric_for_best_model", "masked_accuracy", "--eval_steps", "5"}, "greater_is_better",
            "true", "derived from metric_for_best_model"},
           {bert + Arguments{"--threads", "3"}, "threads", "3", "command line"},
           {classify + Arguments{"--test_data", "x"}, "test_fraction", "unused", "derived from test_data"}}) {
    const Finished finished = run_cinta(Arguments{"config", "--json"} + one.arguments);
    INFO(one.option << " " << finished.error);
    REQUIRE(finished.code == 0);
    const auto shown = nlohmann::json::parse(finished.out).at(one.option);
    CHECK(setting_text(shown) == one.value);
    CHECK(shown.at("from") == one.from);
  }
  const auto shown =
      nlohmann::json::parse(run_cinta({"config", "train", "mlp", "--json", "--resume", "--output_dir", "x"}).out);
  CHECK(shown.at("resume").at("value") == true);
  CHECK(shown.at("quiet").at("value") == false);
  CHECK(shown.at("seed").at("value") == 0);
  CHECK(shown.at("learning_rate").at("value").is_number_float());
  CHECK(shown.at("hidden").at("value").is_string());
  const Finished half = run_cinta({"config", "train", "mlp", "--json", "--weight_decay", ".5"});
  CHECK(nlohmann::json::parse(half.out).at("weight_decay").at("value") == 0.5);
  check_refused({"config", "train", "mlp", "--precision", "fp16", "--loss_scale", "-1"}, {"the scale is positive"});
}
