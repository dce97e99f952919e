// Shared options, and what every training leaves behind.
#include "tools/train_options.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cinta/train/precision.h"
#include "cinta/train/run_files.h"
#include "cinta/train/trial.h"
#include "tools/commands.h"
#include "tools/settings.h"
#include "tools/settings_file.h"

namespace cinta::tools {

void add_threads(CLI::App& command, int& threads) {
  command.add_option("--threads", threads, "0: OMP_NUM_THREADS, else all cores")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
}

CLI::Validator at_least(int64_t least) {
  const auto fault = [least](const std::string& text) {
    double number = 0;
    if (!CLI::detail::lexical_cast(text, number)) return std::string();  // which is said where it is converted
    return number >= static_cast<double>(least) ? std::string() : join("at least ", least, ", given ", text);
  };
  return {fault, "", ""};
}

CLI::Validator place_for_a_file() {
  const auto fault = [](const std::string& path) {
    namespace fs = std::filesystem;
    const fs::path parent = fs::path(path).parent_path(), directory = parent.empty() ? "." : parent;
    std::error_code error;
    const bool fits = fs::is_directory(directory, error) && ::access(directory.c_str(), W_OK | X_OK) == 0 &&
                      !fs::is_directory(path, error);
    return fits && !path.empty() ? std::string() : join("a file in a directory that can be written to, given ", path);
  };
  return {fault, "", ""};
}

namespace {
CLI::Validator positive() {
  const auto fault = [](const std::string& text) {
    double number = 0;
    const bool wrong = CLI::detail::lexical_cast(text, number) && !(number > 0);
    return wrong ? join("more than 0, given ", text) : std::string();
  };
  return {fault, "", ""};
}

/// Refuses a precision before any data is read.
CLI::Validator known_precision() {
  const auto fault = [](const std::string& text) {
    try {
      train::parse_precision(text, Where());
      return std::string();
    } catch (const InputError& error) {
      return std::string(error.text());
    }
  };
  return {fault, "", ""};
}

/// Of the HF Trainer's counts, where -1 stands for none.
CLI::Validator count_or_unset() {
  const auto fault = [](const std::string& text) {
    int64_t number = 0;
    const bool wrong = CLI::detail::lexical_cast(text, number) && number < 1 && number != -1;
    return wrong ? join("at least 1, or -1, given ", text) : std::string();
  };
  return {fault, "", ""};
}

CLI::Validator whole_or_part() {
  const auto fault = [](const std::string& text) {
    double number = 0;
    const bool wrong =
        CLI::detail::lexical_cast(text, number) && number >= 1 && (std::floor(number) != number || number > 1e15);
    return wrong ? join("a whole number, or a part of all steps below 1, given ", text) : std::string();
  };
  return {fault, "", ""};
}
}  // namespace

void TrainOptions::add_to(CLI::App& command) {
  this->command = &command;
  optim::AdamWOptions& adam = run.optimizer;
  command.add_option("--params", params, "JSON file of options that a search chose; only this line goes before")
      ->type_name(settings_file);
  CLI::Option* result =
      command.add_option("--result", trial_result, "JSON file for a search: what came of the run, written at its end");
  command.add_flag("--await_verdict", await_verdict, "wait after each evaluation for the search to say go_on or prune")
      ->needs(result);
  command.add_option("--data", data, "what to train on")->required();
  command.add_option("--output_dir", run.output_dir, "directory of the run")->capture_default_str();
  default_max_steps = run.max_steps;
  command.add_option("--max_steps", run.max_steps, "optimizer steps; -1: as if it were not given")
      ->capture_default_str()
      ->check(count_or_unset());
  command.add_option("--num_train_epochs", epochs, "passes over the data, unless --max_steps is given")
      ->capture_default_str()
      ->check(positive());
  command.add_option("--per_device_train_batch_size,--batch_size", batch_size, "samples of a micro-batch")
      ->capture_default_str();
  command.add_option("--gradient_accumulation_steps", run.accumulation_steps, "micro-batches of a step")
      ->capture_default_str();
  command.add_option("--learning_rate", adam.rate, "peak rate of AdamW")->capture_default_str();
  command.add_option("--lr_scheduler_type", schedule, "constant, linear, cosine, polynomial, inverse_sqrt")
      ->capture_default_str();
  warmup_steps = static_cast<double>(run.schedule.warmup);
  command
      .add_option("--warmup_steps", warmup_steps,
                  "steps of linear warm-up, or a part of all steps, below 1; unless given, a tenth of the run at most")
      ->capture_default_str()
      ->check(at_least(0))
      ->check(whole_or_part());
  command.add_option("--weight_decay", adam.weight_decay, "decoupled; not for biases and norms")->capture_default_str();
  command.add_option("--adam_beta1", adam.beta1, "of the mean of gradients")->capture_default_str();
  command.add_option("--adam_beta2", adam.beta2, "of the mean of their squares")->capture_default_str();
  command.add_option("--adam_epsilon", adam.eps, "added to the root of the latter")->capture_default_str();
  command.add_option("--max_grad_norm", run.max_grad_norm, "clip the global norm; 0: off")->capture_default_str();
  command.add_option("--gradient_checkpointing", gradient_checkpointing, "none, sqrt, every:N, selective:op,op")
      ->capture_default_str();
  command
      .add_option("--precision", precision,
                  "fp32; tf32, bf16, fp16, fp8: mixed, with f32 weights; bf16/wide=PATH,low=PATH,promote=PATH: but by "
                  "these policies in these modules; fp8/RECIPE: current, delayed, block or none, then ,history=1024 "
                  ",amax=max|recent ,margin=0 ,gradient=e5m2 ,sizes=pad|refuse ,wide=PATH")
      ->capture_default_str()
      ->check(known_precision());
  command.add_option("--loss_scale", loss_scale,
                     "a number, or dynamic[:initial=65536,interval=2000,hysteresis=1,...]; unless given: dynamic for "
                     "fp16, else 1");
  command.add_option("--logging_steps", run.logging_steps, "steps between two lines of metrics.jsonl")
      ->capture_default_str()
      ->check(at_least(1));
  command.add_flag("--logging_first_step", run.logging_first_step, "a line after the first step too");
  command.add_option("--eval_strategy", eval_strategy, "no, steps, epoch; always at the end too")
      ->capture_default_str()
      ->check(CLI::IsMember({"no", "steps", "epoch"}));
  command
      .add_option("--eval_steps", run.eval_steps,
                  "for --eval_strategy steps; 0: at the end only, but where that is given: every --logging_steps")
      ->capture_default_str()
      ->check(at_least(0));
  command
      .add_option("--save_strategy", save_strategy, "no, steps, epoch, best; always at the end and when stopped too")
      ->capture_default_str()
      ->check(CLI::IsMember({"no", "steps", "epoch", "best"}));
  command
      .add_option("--save_steps", run.save_steps,
                  "for --save_strategy steps; 0: at the end and when stopped, but where that is given: every 500")
      ->capture_default_str()
      ->check(at_least(0));
  command
      .add_option("--save_total_limit", save_total_limit,
                  "checkpoints kept, the newest and the best among them; 0: all")
      ->capture_default_str()
      ->check(at_least(0));
  command.add_flag("--load_best_model_at_end", load_best, "the run's model is that of the best evaluation");
  command.add_option("--metric_for_best_model", best_metric, "a number of the evaluation")->capture_default_str();
  command.add_flag("--greater_is_better", greater_is_better, "unless given: when the metric is no loss");
  command.add_option("--early_stopping", early_stopping,
                     "e.g. patience=3,min_delta=0: evaluations without improvement");
  command.add_option("--fast_dev_run", fast_dev_run, "try everything in one step, or this many, and write nothing")
      ->capture_default_str()
      ->expected(0, 1)
      ->check(at_least(0));
  command.add_option("--overfit_batches", run.overfit_batches, "learn this many batches by heart")
      ->capture_default_str()
      ->check(at_least(0));
  command.add_option("--seed", seed, "every random number follows from it")->capture_default_str();
  command.add_option("--device", device, "where it is computed")->capture_default_str();
  add_threads(command, threads);
  command.add_flag("--resume", run.resume, "go on from the newest whole checkpoint; begin where there is none yet");
  command.add_flag("--overwrite", run.overwrite, "start anew where a run already lies, and remove its files");
  command.add_flag("--detect_anomaly", run.detect_anomaly, "find the op that makes the first NaN");
  reports.add_to(command);
  command.add_flag("--quiet", run.quiet, "no progress");
  command.add_flag("--json", as_json, "print what came of it as one object");
}

void TrainOptions::add_packing(CLI::App& command) {
  command.add_flag("--padding_free", padding_free,
                   "lay samples end to end and compute on no padding; with dropout, other elements are dropped");
  command.add_flag("--balance_lengths", balance_lengths, "with --padding_free: batches of about equally many tokens");
}

train::MetricFields TrainOptions::header(const std::string& task, uint32_t data_crc32, const train::MetricFields& more,
                                         data::Balance balance) const {
  train::MetricFields out{{"task", task},
                          {"data", data},
                          {"data_crc32", static_cast<int64_t>(data_crc32)},
                          {"seed", seed},
                          {"batch_size", batch_size},
                          {"gradient_accumulation_steps", run.accumulation_steps},
                          {"overfit_batches", run.overfit_batches},
                          {"learning_rate", run.optimizer.rate},
                          {"weight_decay", run.optimizer.weight_decay},
                          {"adam_beta1", run.optimizer.beta1},
                          {"adam_beta2", run.optimizer.beta2},
                          {"adam_epsilon", run.optimizer.eps},
                          {"max_grad_norm", run.max_grad_norm},
                          {"lr_scheduler_type", schedule},
                          {"warmup_steps", warmup_steps},
                          {"warmup_capped", !is_given(*command, "warmup_steps")}};
  if (padding_free) out.emplace_back("padding_free", true);
  if (balance == data::Balance::tokens) out.emplace_back("balance_lengths", true);
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

namespace {

void publish_files(const train::RunResult& result, const std::string& directory,
                   const std::vector<train::PlotReference>& references) {
  train::publish_model(result.checkpoint, directory);
  const train::MetricsFile metrics = train::read_metrics(directory + "/metrics.jsonl");
  train::Plot plot{.title = "Loss of " + directory,
                   .x_label = "step",
                   .y_label = "loss in nats",
                   .series = {},
                   .references = references};
  for (const char* name : {"loss", "eval_loss"}) {
    const train::MetricSeries series = metrics.series(name);
    if (!series.steps.empty()) plot.series.push_back({name, series.steps, series.values});
  }
  train::plot_lines(directory + "/loss.svg", plot);
}

}  // namespace

bool TrainOptions::publish(const train::RunResult& result, const std::string& directory,
                           const std::vector<train::PlotReference>& references,
                           const nlohmann::ordered_json& more) const {
  if (!directory.empty()) publish_files(result, directory, references);
  if (result.stopped_by) exit_code = 128 + result.stopped_by;
  if (result.pruned) exit_code = train::pruned_exit_code;
  if (as_json) {
    train::MetricFields all{{"state", std::string(result.stopped_by ? "stopped"
                                                  : result.pruned   ? "pruned"
                                                                    : "complete")},
                            {"steps", result.steps},
                            {"skipped_steps", result.skipped},
                            {"seconds", result.seconds},
                            {"items_per_second", result.items_per_second}};
    all.insert(all.end(), result.evaluation.begin(), result.evaluation.end());
    auto json = nlohmann::ordered_json::parse(train::json_of(all));
    json.update(more);
    json["checkpoint"] = result.checkpoint;
    json["output_dir"] = directory;
    std::printf("%s\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return false;
  }
  const auto steps = static_cast<long long>(result.steps);
  if (result.stopped_by)
    std::printf("stopped at step %lld; --resume goes on from %s\n", steps, result.checkpoint.c_str());
  if (result.pruned) std::printf("pruned at step %lld\n", steps);
  if (result.skipped)
    std::printf("%lld steps were skipped: their gradients were not finite (skipped_in of metrics.jsonl says where)\n",
                static_cast<long long>(result.skipped));
  return !result.stopped_by;
}

}  // namespace cinta::tools
