// Trials as JSON lines.
#include "tools/tune_trials.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "cinta/data/file.h"
#include "cinta/data/strict_json.h"

namespace cinta::tools {
namespace {

using nlohmann::json;

/// A number that may be none, which is null in the file.
double number_or_nan(const json& value) { return value.is_null() ? NAN : value.get<double>(); }

constexpr std::string_view states[] = {"complete", "pruned", "failed"};

Trial trial_of(const json& line) {
  Trial trial{.number = line.at("trial"),
              .state = line.at("state"),
              .params = line.at("params"),
              .objective = number_or_nan(line.at("objective")),
              .steps = line.at("steps"),
              .epoch = line.at("epoch"),
              .seconds = line.at("seconds"),
              .exit_code = line.at("exit_code"),
              .error = line.value("error", "")};
  for (const json& value : line.at("values")) trial.values.push_back(number_or_nan(value));
  return trial;
}

}  // namespace

nlohmann::ordered_json json_of(const Trial& trial) {
  nlohmann::ordered_json line;
  line["trial"] = trial.number;
  line["state"] = trial.state;
  line["objective"] = trial.objective;  // NaN becomes null
  line["params"] = trial.params;
  line["steps"] = trial.steps;
  line["epoch"] = trial.epoch;
  line["seconds"] = trial.seconds;
  line["values"] = trial.values;
  line["exit_code"] = trial.exit_code;
  if (!trial.error.empty()) line["error"] = trial.error;
  return line;
}

std::string trial_name(int64_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "trial-%04lld", static_cast<long long>(number));
  return name;
}

Trials::Trials(const std::string& directory, const Space& space, bool maximize) : maximize_(maximize) {
  const std::string path = directory + "/trials.jsonl";
  std::string text;
  if (std::filesystem::exists(path)) text = data::read_file(path);
  size_t begin = 0;
  for (size_t end, number = 1; (end = text.find('\n', begin)) != text.npos; begin = end + 1, ++number) {
    const std::string place = join(path, ": line ", number);
    const json line = data::parse_json(std::string_view(text).substr(begin, end - begin), "tune", place);
    const auto check = [&](bool ok, const auto&... parts) {
      require<FileError>(ok, "tune", Where(), place, ": is no trial of this search: ", parts...);
    };
    try {
      Trial trial = trial_of(line);
      check(line["trial"].is_number_unsigned(), "its number is ", line["trial"].dump());
      check(!has(trial.number), "there is another ", trial_name(trial.number));
      check(std::ranges::find(states, trial.state) != std::end(states), "its state is ", line["state"].dump());
      check(fits(space, trial.params), "its params are ", trial.params.dump());
      all_.push_back(std::move(trial));
    } catch (const json::exception& error) {
      check(false, error.what());
    }
  }
  file_ = std::make_unique<data::OutputFile>(path, begin);
}

void Trials::append(Trial trial) {
  file_->write_text(json_of(trial).dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  file_->sync();
  all_.push_back(std::move(trial));
}

bool Trials::has(int64_t number) const {
  return std::ranges::any_of(all_, [&](const Trial& trial) { return trial.number == number; });
}

int64_t Trials::count(const std::string& state) const {
  return std::ranges::count_if(all_, [&](const Trial& trial) { return trial.state == state; });
}

bool Trials::better(double value, double than) const {
  if (std::isnan(value) || std::isnan(than)) return !std::isnan(value);
  return maximize_ ? value > than : value < than;
}

const Trial* Trials::best() const {
  const Trial* best = nullptr;
  for (const Trial& trial : all_)
    if (trial.state == "complete" && better(trial.objective, best ? best->objective : NAN)) best = &trial;
  return best;
}

}  // namespace cinta::tools
