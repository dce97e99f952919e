// Where the command's options come from: the command line before --params, the environment, --config and the defaults;
// names that are no option are refused with the nearest.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "cinta/train/metrics.h"
#include "command_helpers.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

/// The words behind `name` in what `cinta config` printed.
std::vector<std::string> shown(const std::string& printed, const std::string& name) {
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first != name) continue;
    std::vector<std::string> out;
    for (std::string word; words >> word;) out.push_back(word);
    return out;
  }
  return {};
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("an option is taken from the nearest of command line, params, environment, config and default", "[command]") {
  const Scratch scratch;
  const std::string config = scratch / "run.json", params = scratch / "trial.json";
  write_bytes(config, R"({"seed": 1, "max_steps": 2, "learning_rate": 0.5, "hidden": [8, 9], "logging_steps": 3})");
  write_bytes(params, R"({"learning_rate": 0.25, "lr_scheduler_type": "cosine"})");
  const Variable seed("CINTA_SEED", "7"), rate("CINTA_LEARNING_RATE", "0.125"), steps("CINTA_MAX_STEPS", "20");
  const Finished printed =
      run_cinta({"config", "train", "mlp", "--config", config, "--params", params, "--max_steps=30", "--print"});
  INFO(printed.out << printed.error);
  REQUIRE(printed.code == 0);
  CHECK(shown(printed.out, "max_steps") == Words{"30", "command", "line"});
  CHECK(shown(printed.out, "learning_rate") == Words{"0.25", params});
  CHECK(shown(printed.out, "lr_scheduler_type") == Words{"cosine", params});
  CHECK(shown(printed.out, "seed") == Words{"7", "CINTA_SEED"});
  CHECK(shown(printed.out, "hidden") == Words{"8,9", config});
  CHECK(shown(printed.out, "logging_steps") == Words{"3", config});
  CHECK(shown(printed.out, "adam_beta1") == Words{"0.9", "default"});
  CHECK(run_cinta({"config", "--json"}).out.find("\"vocab_size\": {\n    \"value\": 4096,") != std::string::npos);
}

TEST_CASE("empty values, lists, other spellings and files named by the environment", "[command]") {
  const Scratch scratch;
  const std::string config = scratch / "run.json";
  write_bytes(config, R"({"max_steps": 2, "output_dir": ""})");
  const Variable none("CINTA_OUTPUT_DIR", ""), batch("CINTA_BATCH_SIZE", "7"), hidden("CINTA_HIDDEN", "32,16"),
      file("CINTA_CONFIG", config.c_str());
  const Finished printed = run_cinta({"config", "train", "mlp", "--data=generated"});
  INFO(printed.out << printed.error);
  CHECK(shown(printed.out, "max_steps") == Words{"2", config});
  CHECK(shown(printed.out, "output_dir") == Words{"\"\"", config});
  CHECK(shown(printed.out, "per_device_train_batch_size") == Words{"7", "CINTA_BATCH_SIZE"});
  CHECK(shown(printed.out, "hidden") == Words{"32,16", "CINTA_HIDDEN"});
  CHECK(shown(printed.out, "data") == Words{"generated", "command", "line"});
  CHECK(shown(run_cinta({"config", "train", "mlp", "--output_dir=", "--max_steps=3"}).out, "max_steps") ==
        Words{"3", "command", "line"});
}

TEST_CASE("an empty list in a file of settings is refused", "[command]") {
  const Scratch scratch;
  const std::string config = scratch / "run.json";
  for (const char* name : {"hidden", "seed"}) {
    write_bytes(config, std::string("{\"") + name + "\": []}");
    for (const char* file : {"--config", "--params"})
      check_refused({"train", "mlp", "--data", "generated", file, config}, {config + ": " + name + ": ", "found []"});
  }
}

TEST_CASE("a few steps to try everything, and epochs of accumulated batches", "[command]") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "text");
  for (int file = 0; file < 8; ++file) {
    std::string text;
    for (int line = 0; line < 9; ++line)
      text += "value" + std::to_string(file * line) + " = " + std::to_string(line) + ";\n";
    write_bytes(scratch / ("text/" + std::to_string(file)), text);
  }
  const Finished tried =
      run_cinta({"train", "bert", "--data", scratch / "text", "--vocab_size", "120", "--sequence_length", "16",
                 "--fast_dev_run", "2", "--output_dir", scratch / "none", "--threads", "1", "--quiet"});
  INFO(tried.error);
  CHECK(tried.code == 0);
  CHECK(!std::filesystem::exists(scratch / "none"));
  REQUIRE(run_cinta({"train", "mlp", "--data", "generated", "--num_train_epochs", "2", "--batch_size", "100",
                     "--hidden", "4", "--gradient_accumulation_steps", "3", "--threads", "1", "--quiet", "--output_dir",
                     scratch / "run"})
              .code == 0);
  CHECK(std::filesystem::exists(scratch / "run/checkpoint-10"));  // 2 * 1438 / 300, rounded up
}

TEST_CASE("what users of the HF Trainer write means here what it means there", "[command]") {
  const Scratch scratch;
  auto metrics = [&](const Arguments& more) {
    const Finished finished = run_cinta(Arguments{"train", "mlp", "--data", "generated", "--hidden", "4", "--threads",
                                                  "1", "--overwrite", "--quiet", "--output_dir", scratch / "run"} +
                                        more);
    INFO(finished.error);
    REQUIRE(finished.code == 0);
    return train::read_metrics(scratch / "run/metrics.jsonl");
  };
  using Steps = std::vector<double>;
  const auto part = metrics({"--max_steps", "20", "--warmup_steps", "0.15", "--logging_steps", "1",
                             "--lr_scheduler_type", "constant", "--learning_rate", "0.003"})
                        .series("learning_rate")
                        .values;
  CHECK(part[0] == Approx(0));  // 3 of 20
  CHECK(part[1] == Approx(0.001));
  CHECK(part[2] == Approx(0.002));
  CHECK(part[3] == Approx(0.003));
  CHECK(part[19] == Approx(0.003));
  CHECK(metrics({"--max_steps", "-1", "--num_train_epochs", "1", "--batch_size", "100", "--logging_first_step"})
            .series("loss")
            .steps == Steps{1, 10, 15});  // 1438 rows to train on
  CHECK(metrics({"--max_steps", "9", "--eval_strategy", "steps", "--logging_steps", "4", "--load_best_model_at_end",
                 "True", "--greater_is_better", "False"})
            .series("eval_loss")
            .steps == Steps{4, 8, 9});
  metrics({"--max_steps", "40", "--eval_steps", "10", "--early_stopping", "patience=1,min_delta=1000"});
  CHECK(std::filesystem::read_symlink(scratch / "run/best").string().starts_with("checkpoint-"));
  {
    const Variable steps("CINTA_MAX_STEPS", "many");
    check_refused({"train", "mlp", "--data", "generated"}, {"--max_steps = many (from CINTA_MAX_STEPS)"});
  }
  write_bytes(scratch / "run/env.json", "damaged");
  CHECK(run_cinta({"train", "mlp", "--data", "generated", "--hidden", "4", "--threads", "1", "--resume", "--output_dir",
                   scratch / "run", "--max_steps", "50"})
            .error.find("; begun anew") != std::string::npos);
  CHECK(read_bytes(scratch / "run/env.json").starts_with("["));
  check_refused(
      {"train", "mlp", "--data", "generated", "--eval_steps", "9", "--metric_for_best_model", "speed", "--quiet"},
      {"no 'eval_speed' to watch"});
  const Finished tried = run_cinta({"train", "mlp", "--data", "generated", "--fast_dev_run", "--json", "--quiet",
                                    "--output_dir", scratch / "none", "--threads", "1"});
  CHECK(tried.out.find("\"steps\":1,") != std::string::npos);
  CHECK(!std::filesystem::exists(scratch / "none"));
  check_refused({"train", "mlp", "--data", "generated", "--warmup_steps", "2.5"}, {"--warmup_steps", "given 2.5"});
  check_refused({"train", "mlp", "--data", "generated", "--max_steps", "0"}, {"--max_steps", "given 0"});
}

TEST_CASE("every command reads a file of settings, and every option says what it is", "[command]") {
  const Scratch scratch;
  const std::string config = scratch / "formats.json";
  write_bytes(config, R"({"json": true})");
  CHECK(run_cinta({"formats", "--config", config}).out.starts_with("["));
  size_t options = 0;
  for (const Arguments& command :
       {Arguments{"train", "mlp"}, Arguments{"train", "bert"}, Arguments{"train", "classify"},
        Arguments{"train", "characters"}, Arguments{"eval"}, Arguments{"predict"}, Arguments{"fill"}, Arguments{"tune"},
        Arguments{"tokenize"}, Arguments{"inspect"}, Arguments{"convert"}, Arguments{"trace"}, Arguments{"plan"},
        Arguments{"bench", "step"}, Arguments{"bench", "rows"}, Arguments{"bench", "precision"}, Arguments{"config"},
        Arguments{"formats"}, Arguments{"completion"}}) {
    const std::string text = run_cinta(command + Arguments{"--help"}).out;
    INFO(text);
    CHECK((text.find("--config ") != text.npos || command.front() == "config"));
    std::istringstream help(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(help, line);) lines.push_back(line);
    const std::string indent(30, ' ');  // of what is said
    for (size_t i = 0; i < lines.size(); ++i) {
      if (!lines[i].starts_with("  -")) continue;
      INFO(lines[i]);
      CHECK(((lines[i].size() > indent.size() && lines[i][indent.size() - 1] == ' ') ||
             (i + 1 < lines.size() && lines[i + 1].starts_with(indent))));
      ++options;
    }
  }
  CHECK(options > 200);
}

TEST_CASE("a run obeys the files and the environment as it does the command line", "[command]") {
  const Scratch scratch;
  const std::string config = scratch / "run.json";
  write_bytes(config, R"({"data": "generated", "max_steps": 5, "hidden": [8], "batch_size": 4, "quiet": true})");
  const Variable directory("CINTA_OUTPUT_DIR", (scratch / "from").c_str());
  REQUIRE(run_cinta({"train", "mlp", "--config", config, "--threads", "1"}).code == 0);
  ::unsetenv("CINTA_OUTPUT_DIR");
  REQUIRE(run_cinta({"train", "mlp", "--data", "generated", "--max_steps", "5", "--hidden", "8", "--batch_size", "4",
                     "--quiet", "--threads", "1", "--output_dir", scratch / "line"})
              .code == 0);
  for (const char* name : {"/model.safetensors", "/metrics.jsonl", "/config.json"})
    CHECK(read_bytes(scratch / "from" + name) == read_bytes(scratch / "line" + name));
}

TEST_CASE("what is no option is refused with the nearest that is", "[command]") {
  const Scratch scratch;
  const std::string config = scratch / "run.json";
  auto refused = [&](const Arguments& arguments) {
    const Finished finished = run_cinta(arguments);
    CHECK(finished.code == 2);
    return finished.error;
  };
  auto contains = [](const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; };
  CHECK(
      contains(refused({"train", "mlp", "--data", "generated", "--lerning_rate", "1"}), "nearest is --learning_rate"));
  CHECK(contains(refused({"train", "mlp", "--dat", "generated"}), "no option is called --dat; the nearest is --data"));
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {R"({"batch_sise": 4})", "run.json: 'batch_sise' is no option of mlp; the nearest is 'batch_size'"},
           {R"({"zzz": 4})", "run.json: 'zzz' is no option of mlp"},
           {R"({"seed": {"a": 1}})", "run.json: seed: found {\"a\":1}"},
           {R"({"seed": null})", "run.json: seed: found null"},
           {R"([1])", "run.json: is not a JSON object of option names"},
           {R"({"seed": 1, "seed": 2})", "run.json: found the key 'seed' twice"},
           {R"({"batch_size": 1, "per_device_train_batch_size": 2})", "is given twice"},
           {R"({"config": "other.json"})", "run.json: a file names no other file"},
           {R"({"seed": "many"})", "at most 64 bits, given many"}}) {
    write_bytes(config, text);
    INFO(text);
    CHECK(contains(refused({"train", "mlp", "--data", "generated", "--config", config}), part));
  }
  CHECK(contains(refused({"train", "mlp", "--config", scratch / "none.json"}), "none.json: cannot be opened"));
  CHECK(contains(refused({"tran"}), "no command is called 'tran'; the nearest is 'train', there are train, eval"));
  CHECK(contains(refused({"train", "chars"}), "no command is called 'train chars'; there are mlp"));
  CHECK(contains(refused({"bench", "rws"}), "no command is called 'bench rws'; the nearest is 'rows', there are step"));
  const Arguments run{"train", "mlp", "--data", "generated", "--output_dir", scratch / "run"};
  CHECK(contains(
      refused(run + Arguments{"--load_best_model_at_end", "--eval_steps", "9", "--metric_for_best_model", "acc"}),
      "no 'eval_acc' to watch; it has eval_loss, eval_accuracy"));
  CHECK(contains(refused(run + Arguments{"--early_stopping", "patience=2"}), "needs evaluations on the way"));
  CHECK(contains(refused(run + Arguments{"--device", "meta"}), "training needs memory"));
  CHECK(contains(refused(run + Arguments{"--seed", "99999999999999999999"}), "at most 64 bits"));
  {
    const Variable wrong("CINTA_LERNING_RATE", "1");
    CHECK(contains(refused({"train", "mlp", "--data", "generated"}),
                   "the variable CINTA_LERNING_RATE of the environment is no option of any command; the nearest is "
                   "CINTA_LEARNING_RATE"));
  }
  const Variable seed("CINTA_SEED", "x");
  CHECK(contains(refused({"train", "mlp", "--data", "generated"}), "given x"));
}

TEST_CASE("names of other trainers' options are refused with ours", "[command_settings]") {
  const Scratch scratch;
  const std::string config = scratch / "run.json";
  const Arguments mlp{"train", "mlp", "--data", "generated"}, bert{"train", "bert", "--data", "none"},
      classify{"train", "classify", "--data", "none"};
  check_refused(mlp + Arguments{"--bf16", "True"}, {"--bf16", "here that is --precision bf16;"});
  check_refused(mlp + Arguments{"--fp16"}, {"here that is --precision fp16;"});
  check_refused(mlp + Arguments{"--tf32=True"}, {"here that is --precision tf32;"});
  check_refused(mlp + Arguments{"--resume_from_checkpoint", "x"},
                {"here that is --resume, with the run's --output_dir"});
  check_refused(mlp + Arguments{"--overwrite_output_dir"}, {"here that is --overwrite;"});
  check_refused(mlp + Arguments{"--per_gpu_train_batch_size", "8"}, {"here that is --per_device_train_batch_size;"});
  check_refused(mlp + Arguments{"--do_train"}, {"here that is cinta train itself"});
  check_refused(mlp + Arguments{"--do_eval"}, {"--eval_strategy", "cinta eval"});
  check_refused(mlp + Arguments{"--warmup_ratio", "0.1"}, {"--warmup_steps with a number below 1"});
  check_refused(mlp + Arguments{"--memory_timeline", "memory.json"}, {"--report html", "--trace FILE"});
  check_refused(bert + Arguments{"--max_seq_length", "9"}, {"here that is --sequence_length"});
  check_refused(mlp + Arguments{"--epochs", "3"}, {"here that is --num_train_epochs;"});
  check_refused(mlp + Arguments{"--batch", "3"}, {"here that is --per_device_train_batch_size;"});
  check_refused(mlp + Arguments{"--optim", "sgd"}, {"here that is AdamW, always"});
  check_refused(mlp + Arguments{"--run_name", "x"}, {"here that is --output_dir;"});
  check_refused(mlp + Arguments{"--save_safetensors", "True"}, {"here that is always so"});
  check_refused(mlp + Arguments{"--dropout", "0.1"}, {"for models of texts"});
  check_refused(mlp + Arguments{"--lr_scheduler_type", "constant_with_warmup"}, {"constant here, with --warmup_steps"});
  check_refused(mlp + Arguments{"--report_to", "none"}, {"metrics.jsonl is always written"});
  check_refused(classify + Arguments{"--model_name_or_path", "x"}, {"here that is --model;"});
  // An option that the command has not is no advice.
  CHECK(run_cinta(mlp + Arguments{"--max_seq_length", "9"}).error.find("sequence_length;") == std::string::npos);
  write_bytes(config, R"({"bf16": true})");
  check_refused(mlp + Arguments{"--config", config}, {"'bf16' is no option of mlp; here that is --precision bf16"});
  for (const auto& [variable, part] :
       {std::pair{"CINTA_FP16", "here that is --precision fp16"}, std::pair{"CINTA_CHECK", "--detect_anomaly"},
        std::pair{"CINTA_DEBUG", "--trace FILE for the time of each op"}}) {
    const Variable given(variable, "1");
    check_refused(mlp, {std::string("the variable ") + variable, part});
  }
}

TEST_CASE("bash completes commands, options and files", "[command_settings]") {
  if (std::system("bash -c true") != 0) {
    WARN("skipped: there is no bash");
    return;
  }
  const Scratch scratch;
  const Finished script = run_cinta({"completion"});
  REQUIRE(script.code == 0);
  write_bytes(scratch / "completion", script.out);
  write_bytes(scratch / "data.csv", "");
  auto completed = [&](const std::string& line, int words) {
    const std::string command = "cd " + scratch.path() + " && bash -c 'set -u; . ./completion; COMP_WORDS=(cinta " +
                                line + "); COMP_CWORD=" + std::to_string(words) +
                                "; _cinta; echo ${COMPREPLY[*]}' > found";
    REQUIRE(std::system(command.c_str()) == 0);
    return read_bytes(scratch / "found");
  };
  CHECK(completed("ev", 1) == "eval\n");
  CHECK(completed("train m", 2) == "mlp\n");
  CHECK(completed("train mlp --learn", 3) == "--learning_rate\n");
  CHECK(completed("eval --json da", 3) == "\n");
  CHECK(completed("eval --data da", 3) == "data.csv\n");
}
