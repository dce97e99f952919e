// Names of other trainers, mostly the HF Trainer's (transformers.TrainingArguments), and the nearest of our own.
#include "tools/option_names.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "cinta/core/error.h"
#include "tools/settings_file.h"

namespace cinta::tools {
namespace {

struct ForeignName {
  std::string_view name;
  std::string_view option;       ///< ours that does it; the advice is for commands that have it
  std::string_view advice = {};  ///< what to give, where that is more than the option's name
};

constexpr ForeignName foreign_names[] = {
    {"accumulate_grad_batches", "gradient_accumulation_steps"},
    {"auto_find_batch_size", "per_device_train_batch_size", "what cinta plan --memory says"},
    {"batch", "per_device_train_batch_size"},
    {"bf16", "precision", "--precision bf16"},
    {"block_size", "sequence_length"},
    {"check", "detect_anomaly"},
    {"data_seed", "seed"},
    {"debug", "detect_anomaly", "--detect_anomaly for numbers, --trace FILE for the time of each op"},
    {"disable_tqdm", "quiet"},
    {"do_eval", "eval_strategy", "--eval_strategy steps or epoch; cinta eval for a trained model"},
    {"do_predict", "output_dir", "cinta predict --model, with the run's --output_dir"},
    {"do_train", "output_dir", "cinta train itself"},
    {"dropout", "weight_decay", "for models of texts; an mlp has --weight_decay"},
    {"early_stopping_patience", "early_stopping", "--early_stopping patience=N"},
    {"early_stopping_threshold", "early_stopping", "--early_stopping patience=N,min_delta=X"},
    {"epochs", "num_train_epochs"},
    {"evaluation_strategy", "eval_strategy"},
    {"fp16", "precision", "--precision fp16"},
    {"fp8", "precision", "--precision fp8"},
    {"full_determinism", "seed", "always so, by --seed"},
    {"gradient_clip_val", "max_grad_norm"},
    {"log_level", "quiet"},
    {"logging_dir", "report_to", "--report_to tensorboard, whose files lie in --output_dir"},
    {"logging_strategy", "logging_steps"},
    {"lr", "learning_rate"},
    {"max_epochs", "num_train_epochs"},
    {"max_length", "sequence_length"},
    {"max_seq_length", "sequence_length"},
    {"memory_timeline", "report", "--report html, whose page shows memory over time, or --trace FILE"},
    {"mixed_precision", "precision"},
    {"model_name_or_path", "model"},
    {"no_cuda", "device", "--device cpu"},
    {"optim", "adam_epsilon", "AdamW, always, with --learning_rate and --adam_beta1"},
    {"optimizer", "adam_epsilon", "AdamW, always, with --learning_rate and --adam_beta1"},
    {"overwrite_output_dir", "overwrite"},
    {"per_device_eval_batch_size", "per_device_train_batch_size", "--per_device_train_batch_size, the only one"},
    {"per_gpu_eval_batch_size", "per_device_train_batch_size", "--per_device_train_batch_size, the only one"},
    {"per_gpu_train_batch_size", "per_device_train_batch_size"},
    {"resume_from_checkpoint", "resume", "--resume, with the run's --output_dir"},
    {"run_name", "output_dir"},
    {"save_safetensors", "output_dir", "always so: model.safetensors in --output_dir"},
    {"save_top_k", "save_total_limit"},
    {"test_file", "test_data"},
    {"tf32", "precision", "--precision tf32"},
    {"train_file", "data"},
    {"use_cpu", "device", "--device cpu"},
    {"val_check_interval", "eval_steps"},
    {"validation_file", "test_data"},
    {"warmup_ratio", "warmup_steps", "--warmup_steps with a number below 1"},
};

/// Levenshtein's distance.
size_t edits(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({replaced, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_of(const std::string& name, const std::set<std::string>& known) {
  std::string nearest;
  size_t least = std::max<size_t>(2, name.size() / 2) + 1;
  for (const std::string& one : known)
    if (const size_t distance = edits(name, one); distance < least) least = distance, nearest = one;
  return nearest;
}

std::set<std::string> option_names(const CLI::App& command) {
  std::set<std::string> names;
  for (const CLI::Option* option : named_options(command))
    names.insert(option->get_lnames().begin(), option->get_lnames().end());
  return names;
}

std::string hint(const std::string& name, const std::set<std::string>& known,
                 const std::function<std::string(const std::string&)>& spelled) {
  for (const ForeignName& one : foreign_names)
    if (one.name == name && known.contains(std::string(one.option)))
      return join("; here that is ", one.advice.empty() ? "--" : "", one.advice.empty() ? one.option : one.advice);
  const std::string nearest = nearest_of(name, known);
  return nearest.empty() ? nearest : "; the nearest is " + spelled(nearest);
}

std::string command_names(const CLI::App& parent) {
  std::string names;
  for (const CLI::App* one : parent.get_subcommands({})) names += (names.empty() ? "" : ", ") + one->get_name();
  return names;
}

std::string command_hint(const CLI::App& parent, const std::string& name) {
  std::set<std::string> known;
  for (const CLI::App* one : parent.get_subcommands({})) known.insert(one->get_name());
  const std::string nearest = nearest_of(name, known);
  return join("; ", nearest.empty() ? "" : "the nearest is '" + nearest + "', ", "there are ", command_names(parent));
}

}  // namespace cinta::tools
