// What the options come to, in the order in which one follows from the other.
#include <algorithm>
#include <cmath>

#include "cinta/autograd/checkpoint.h"
#include "cinta/autograd/node.h"
#include "cinta/backends/threads.h"
#include "cinta/core/device.h"
#include "cinta/ops/shape.h"
#include "cinta/optim/adamw.h"
#include "cinta/train/callbacks.h"
#include "cinta/train/environment.h"
#include "cinta/train/precision.h"
#include "cinta/train/stop_signals.h"
#include "cinta/train/trial.h"
#include "tools/commands.h"
#include "tools/resolution.h"
#include "tools/settings_file.h"
#include "tools/train_options.h"

namespace cinta::tools {

std::string TrainOptions::loss_scale_text() const {
  return loss_scale.empty() ? (precision == "fp16" || precision.starts_with("fp16/") ? "dynamic" : "1") : loss_scale;
}

train::WatchedMetric TrainOptions::watched_metric() const {
  train::WatchedMetric metric{best_metric, greater_is_better};
  if (!metric.name.starts_with("eval_")) metric.name = "eval_" + metric.name;
  if (!is_given(*command, "greater_is_better")) metric.greater_is_better = !metric.name.ends_with("loss");
  return metric;
}

std::shared_ptr<train::EarlyStopping> TrainOptions::make_early_stopping() const {
  if (early_stopping.empty()) return nullptr;
  train::EarlyStopping::Options stopping{.metric = watched_metric()};
  for (const std::string& part : CLI::detail::split(early_stopping, ',')) {
    const bool fits =
        (part.starts_with("patience=") && CLI::detail::lexical_cast(part.substr(9), stopping.patience)) ||
        (part.starts_with("min_delta=") && CLI::detail::lexical_cast(part.substr(10), stopping.min_delta));
    require(fits, "train", Where(), "--early_stopping is patience=N,min_delta=X, given '", early_stopping, "'");
  }
  return std::make_shared<train::EarlyStopping>(stopping, Where());
}

void TrainOptions::add_callbacks(train::RunOptions& out) const {
  out.callbacks.push_back(std::make_shared<train::PrecisionNote>());
  const train::WatchedMetric metric = watched_metric();
  if (auto stopping = make_early_stopping()) out.callbacks.push_back(std::move(stopping));
  out.callbacks.push_back(std::make_shared<train::BestCheckpoint>(
      train::BestCheckpoint::Options{metric, save_total_limit, load_best || save_strategy == "best", load_best}));
  out.callbacks.push_back(
      std::make_shared<train::EnvironmentFile>(train::MetricFields{{"cinta", std::string(version)},
                                                                   {"command", command_line},
                                                                   {"precision", precision},
                                                                   {"loss_scale", loss_scale_text()}}));
  if (!trial_result.empty())
    out.callbacks.push_back(
        std::make_shared<train::TrialReport>(train::TrialReport::Options{trial_result, metric, await_verdict}));
}

void TrainOptions::refuse_unused() const {
  require(!run.resume || !run.overwrite, "train", Where(),
          "--resume goes on with a run and --overwrite starts it anew: one of them");
  const auto refuse = [&](const char* name, bool effective, const std::string& because) {
    require_effect(*command, name, effective, because);
  };
  refuse("eval_steps", run.eval_steps == 0 || eval_strategy == "steps", "with --eval_strategy " + eval_strategy);
  refuse("save_steps", run.save_steps == 0 || save_strategy == "steps", "with --save_strategy " + save_strategy);
  refuse("save_total_limit", save_total_limit == 0 || save_strategy != "no" || load_best, "with --save_strategy no");
  refuse("trace_steps", !reports.trace.empty(), "without --trace");
  refuse("balance_lengths", !balance_lengths || padding_free, "without --padding_free");
  const bool kept = !run.output_dir.empty();
  for (const auto& [name, writes] :
       {std::pair{"resume", run.resume}, std::pair{"overwrite", run.overwrite},
        std::pair{"exponents", reports.exponents}, std::pair{"report", reports.report != "none"},
        std::pair{"report_to", reports.report_to != "jsonl"}, std::pair{"save_steps", run.save_steps > 0},
        std::pair{"save_strategy", save_strategy != "no"}, std::pair{"save_total_limit", save_total_limit > 0},
        std::pair{"load_best_model_at_end", load_best}})
    refuse(name, kept || !writes, "without an --output_dir");
}

void TrainOptions::check_values() const {
  parse_device(device);
  autograd::parse_checkpoint_policy(gradient_checkpointing, Where());
  make_early_stopping();
  require(run.max_grad_norm >= 0, "train", Where(), "--max_grad_norm is not negative, given ", run.max_grad_norm);
  Tensor weight = zeros({1});
  autograd::require_gradient(weight);
  optim::AdamW({{"weight", weight}}, run.optimizer, Where());  // which knows what its numbers may be
}

Resolution TrainOptions::resolution(std::optional<int64_t> samples) const {
  require<DeviceError>(device != "meta", "train", Where(), "training needs memory, which the device meta has none of");
  require(batch_size > 0 && run.accumulation_steps > 0, "train", Where(),
          "batch size and gradient_accumulation_steps are positive, given ", batch_size, " and ",
          run.accumulation_steps);
  constexpr int64_t most = int64_t{1} << 24;  // far above any step; all its batches are gathered before it begins
  require(batch_size <= most / run.accumulation_steps, "train", Where(), "a step has at most ", most,
          " samples, given --per_device_train_batch_size ", batch_size, " and --gradient_accumulation_steps ",
          run.accumulation_steps);
  reports.check();
  check_values();
  refuse_unused();
  require(schedule != "constant_with_warmup", "train", Where(),
          "--lr_scheduler_type constant_with_warmup is constant here, with --warmup_steps");
  Resolution out(run);
  out.run.schedule.kind = optim::parse_schedule(schedule, Where());
  out.run.autocast = train::parse_precision(precision, Where());
  out.run.loss_scale = optim::parse_loss_scale(loss_scale_text(), Where());
  out.values["loss_scale"] = {optim::text_of(out.run.loss_scale), loss_scale.empty() ? "derived from precision" : ""};
  if (is_given(*command, "max_steps") && run.max_steps != -1) {
    out.values["num_train_epochs"] = {"unused", "derived from max_steps"};
  } else if (epochs > 0) {
    out.derive("derived from num_train_epochs", [&](train::RunOptions& run) {
      const double steps = std::ceil(epochs * static_cast<double>(samples.value_or(0)) /
                                     (static_cast<double>(batch_size) * static_cast<double>(run.accumulation_steps)));
      require(steps < 1e15, "train", Where(), "--num_train_epochs ", epochs, " is more than any run can do");
      run.max_steps = samples ? static_cast<int64_t>(steps) : unknown_count;
    });
  } else {
    out.derive("default", [&](train::RunOptions& run) { run.max_steps = default_max_steps; });
    out.values["num_train_epochs"] = {"unused", "derived from max_steps"};
  }
  const bool part = warmup_steps < 1;
  out.run.schedule.warmup = part ? 0 : static_cast<int64_t>(warmup_steps);
  out.derive("derived from max_steps", [&](train::RunOptions& run) {
    int64_t& steps = run.schedule.warmup;
    const bool capped = !is_given(*command, "warmup_steps") && steps > 0;
    if (run.max_steps == unknown_count)
      steps = capped || (part && warmup_steps > 0) ? unknown_count : steps;
    else if (part)
      steps = static_cast<int64_t>(std::ceil(warmup_steps * static_cast<double>(run.max_steps)));
    else if (capped)
      steps = std::min(steps, run.max_steps / 10);
  });
  if (is_given(*command, "eval_strategy") && eval_strategy == "steps" && run.eval_steps == 0)
    out.derive("derived from logging_steps", [](train::RunOptions& run) { run.eval_steps = run.logging_steps; });
  if (is_given(*command, "save_strategy") && save_strategy == "steps" && run.save_steps == 0)
    out.derive("derived from save_strategy", [](train::RunOptions& run) { run.save_steps = 500; });
  if (fast_dev_run > 0)
    out.derive("derived from fast_dev_run",
               [&](train::RunOptions& run) { run = train::fast_dev_run(run, fast_dev_run); });
  if (eval_strategy != "steps")
    out.derive("derived from eval_strategy", [](train::RunOptions& run) { run.eval_steps = 0; });
  if (save_strategy != "steps")
    out.derive("derived from save_strategy", [](train::RunOptions& run) { run.save_steps = 0; });
  out.run.eval_each_epoch = eval_strategy == "epoch";
  out.run.save_each_epoch = save_strategy == "epoch";
  const bool evaluates = out.run.eval_steps > 0 || out.run.eval_each_epoch;
  require(early_stopping.empty() || evaluates, "train", Where(),
          "--early_stopping needs evaluations on the way: --eval_steps or --eval_strategy epoch");
  const std::string without = "without evaluations on the way: --eval_steps or --eval_strategy epoch";
  require_effect(*command, "load_best_model_at_end", !load_best || evaluates, without);
  require_effect(*command, "save_strategy", save_strategy != "best" || evaluates, without);
  for (const char* judging : {"greater_is_better", "metric_for_best_model"})
    require_effect(*command, judging, evaluates || !trial_result.empty(), without);
  const train::WatchedMetric metric = watched_metric();
  out.values["metric_for_best_model"] = {metric.name};
  out.values["greater_is_better"] = {
      metric.greater_is_better ? "true" : "false",
      is_given(*command, "greater_is_better") ? "" : "derived from metric_for_best_model"};
  if (threads == 0) out.values["threads"] = {join(cinta::threads()), "derived from this machine"};
  return out;
}

train::RunOptions TrainOptions::resolve(int64_t samples) const {
  train::RunOptions out = resolution(samples).run;
  if (threads > 0) set_threads(threads);
  add_callbacks(out);
  reports.add_callbacks(out, fast_dev_run == 0);
  out.stop = &train::stop_signal();
  train::stop_on_signals();
  return out;
}

ResolvedValues Resolution::numbers_of(const train::RunOptions& run) {
  const auto count = [](int64_t number) {
    return ResolvedValue{number == unknown_count ? "known once the data is read" : join(number)};
  };
  return {{"max_steps", count(run.max_steps)},         {"warmup_steps", count(run.schedule.warmup)},
          {"logging_steps", count(run.logging_steps)}, {"eval_steps", count(run.eval_steps)},
          {"save_steps", count(run.save_steps)},       {"output_dir", {run.output_dir}}};
}

}  // namespace cinta::tools
