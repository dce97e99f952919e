// State by parameter name, in the formats the weights use.
#include "cinta/train/run_files.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cinta/data/file.h"
#include "cinta/data/strict_json.h"
#include "cinta/models/model_file.h"
#include "cinta/train/callbacks.h"
#include "cinta/train/checkpoint_names.h"

namespace cinta::train {
namespace {
constexpr const char* optimizer_file = "optimizer.safetensors";
constexpr const char* state_file = "trainer_state.json";

/// NaN and infinities, which JSON lacks, as texts.
nlohmann::ordered_json spelled(const std::vector<NamedNumber>& numbers) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const auto& [name, number] : numbers) {
    if (std::isfinite(number))
      out[name] = number;
    else
      out[name] = std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
  }
  return out;
}

/// A checkpoint that stands in its place, or a link to one.
bool stands(const std::string& name) {
  const size_t digits = name.find_first_not_of("0123456789", checkpoint_prefix.size());
  return name == "best" || name == "last" ||
         (name.starts_with(checkpoint_prefix) && name.size() > checkpoint_prefix.size() && digits == name.npos);
}

bool is_checkpoint(const std::string& name) { return stands(name) || name.starts_with("." + checkpoint_prefix); }

/// Whether runs of some kind write a file of this name beside their checkpoints.
bool is_run_file(const std::string& name) {
  constexpr std::array names{"characters.txt", "config.json", "env.json", "exponents.json", "exponents.svg", "loss.svg",
                             "report.html", "model.safetensors", "times.jsonl", "tokenizer_config.json", "vocab.txt",
                             // Of transformers, which reads them before vocab.txt.
                             "added_tokens.json", "special_tokens_map.json", "tokenizer.json"};
  return name == metrics_name || name.starts_with(events_prefix) || std::ranges::find(names, name) != names.end();
}

void remove_all(const std::string& path, Where where) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) data::throw_file_error(path, "cannot be removed", error.value(), where);
}
}  // namespace

void write_run_state(CheckpointWriter& writer, const RunState& state, double epoch, const optim::Optimizer& optimizer,
                     const optim::LossScaler& scaler, const autograd::NarrowProducts* products) {
  std::vector<models::NamedTensor> tensors;
  for (const auto& all :
       {optimizer.state(), scaler.state(), products ? products->state() : std::vector<optim::NamedTensor>()})
    for (const auto& [name, tensor] : all) tensors.push_back({name, tensor});
  models::write_tensors(tensors, writer.add(optimizer_file));
  nlohmann::ordered_json json = {{"global_step", state.step},
                                 {"batches", state.batches},
                                 {"interval_loss_sum", state.loss_sum},
                                 {"interval_correct", state.correct_sum},
                                 {"interval_items", state.items},
                                 {"evaluated_step", state.evaluated_step},
                                 {"evaluation_due", state.evaluation_due},
                                 {"save_due", state.save_due},
                                 {"callbacks", spelled(state.numbers)}};
  // What only people and their scripts read, under the names of the HF Trainer's file. Its log_history is left out: it
  // would copy all of metrics.jsonl, which lies beside the checkpoints, into each of them.
  const std::optional<BestEvaluation> best = best_evaluation(state);
  json["epoch"] = epoch;
  json["best_metric"] = best ? nlohmann::ordered_json(best->value) : nullptr;
  json["best_global_step"] = best ? nlohmann::ordered_json(best->step) : nullptr;
  json["best_model_checkpoint"] =
      best ? nlohmann::ordered_json(checkpoint_prefix + std::to_string(best->step)) : nullptr;
  writer.add(state_file).write_text(json.dump(2) + "\n");
}

RunState read_run_state(const std::string& directory, optim::Optimizer& optimizer, optim::LossScaler& scaler,
                        autograd::NarrowProducts* products, Where where) {
  const data::SafetensorsFile file = data::SafetensorsFile::open(directory + "/" + optimizer_file, where);
  std::vector<optim::NamedTensor> tensors;
  for (const data::SafetensorsEntry& entry : file.entries())
    tensors.emplace_back(entry.name, file.tensor(entry, where));
  scaler.load_state(tensors, where);
  if (products) products->load_state(tensors, where);
  std::erase_if(tensors, [](const auto& one) {
    return optim::LossScaler::owns(one.first) || autograd::NarrowProducts::owns(one.first);
  });
  optimizer.load_state(tensors, where);

  const std::string path = directory + "/" + state_file;
  const nlohmann::json json = data::parse_json_object(data::read_file(path), "resume", path, where);
  auto number = [&](const char* key) {
    require<FileError>(json.contains(key) && json[key].is_number(), "resume", where, path, ": no number called ", key);
    return json[key];
  };
  RunState state{.step = number("global_step").get<int64_t>(),
                 .batches = number("batches").get<int64_t>(),
                 .loss_sum = number("interval_loss_sum").get<double>(),
                 .correct_sum = number("interval_correct").get<double>(),
                 .items = number("interval_items").get<int64_t>(),
                 .evaluated_step = number("evaluated_step").get<int64_t>(),
                 .save_due = json.value("save_due", nlohmann::json()) == true,
                 .evaluation_due = json.value("evaluation_due", nlohmann::json()) == true,
                 .numbers = {}};
  const nlohmann::json callbacks = json.value("callbacks", nlohmann::json::object());
  require<FileError>(callbacks.is_object(), "resume", where, path, ": callbacks is not an object");
  for (const auto& [name, value] : callbacks.items()) {
    const double number = value.is_number() ? value.get<double>()
                          : value == "inf"  ? INFINITY
                          : value == "-inf" ? -INFINITY
                                            : NAN;
    require<FileError>(!std::isnan(number) || value == "nan", "resume", where, path, ": callbacks: ", name,
                       " is not a number");
    state.keep(name, number);
  }
  return state;
}

void publish_model(const std::string& checkpoint, const std::string& directory, Where where) {
  for (const std::string& name : data::names_in(checkpoint, where)) {
    if (name == manifest_name || name == optimizer_file || name == state_file) continue;
    const std::string bytes = data::read_file(checkpoint + "/" + name);
    data::AtomicFile file(directory + "/" + name, where);
    file.write_text(bytes);
    file.commit(where);
  }
}

void make_directory(const std::string& path, Where where) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) data::throw_file_error(path, "the directory cannot be made", error.value(), where);
}

void remove_checkpoints(const std::string& directory, Where where) {
  for (const std::string& name : data::names_in(directory, where))
    if (is_checkpoint(name) || name == "model.safetensors") remove_all(directory + "/" + name, where);
}

bool holds_run(const std::string& directory) { return std::filesystem::exists(directory + "/" + metrics_name); }

bool holds_checkpoint(const std::string& directory, Where where) {
  if (!std::filesystem::is_directory(directory)) return false;
  return std::ranges::any_of(data::names_in(directory, where), stands);
}

std::string name_of_run_file(const std::string& directory, Where where) {
  if (!std::filesystem::is_directory(directory)) return "";
  for (const std::string& name : data::names_in(directory, where))
    if (is_checkpoint(name) || is_run_file(name)) return name;
  return "";
}

void remove_run(const std::string& directory, Where where) {
  remove_checkpoints(directory, where);
  for (const std::string& name : data::names_in(directory, where)) {
    const std::string path = directory + "/" + name;
    std::error_code error;
    if (name.starts_with(seed_prefix) && holds_run(path)) {
      remove_run(path, where);
      std::filesystem::remove(path, error);  // unless something else lies there
    } else if (is_run_file(name) && name != metrics_name && !std::filesystem::is_directory(path)) {
      remove_all(path, where);
    }
  }
  remove_all(directory + "/" + metrics_name, where);  // last: without it nobody knows that the others are a run's
}

}  // namespace cinta::train
