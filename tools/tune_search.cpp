// What must hold before the first trial.
#include "tools/tune_search.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>

#include "cinta/data/file.h"
#include "cinta/data/strict_json.h"
#include "tools/commands.h"
#include "tools/option_names.h"

namespace cinta::tools {

using nlohmann::json;

namespace {

/// Options that the search gives to the trials, or that would leave it without a model.
constexpr const char* of_the_search[] = {"params", "result",    "await_verdict", "output_dir",
                                         "resume", "overwrite", "fast_dev_run"};

/// Refuses a directory of trials or of a run, but of no search. Returns what the search there was begun with; null
/// where no trial has begun.
json search_begun(const std::string& directory, const std::string& path) {
  const auto holds = [&](const std::string& name) { return std::filesystem::exists(directory + "/" + name); };
  if (!holds("search.json")) {
    for (const std::string& name : {std::string("trials.jsonl"), trial_name(0), std::string("metrics.jsonl")})
      require<FileError>(!holds(name), "tune", Where(), directory, ": holds ", name,
                         ", but no search; choose another --output_dir");
    return nullptr;
  }
  json begun = data::parse_json(data::read_file(path), "tune", path);
  require<FileError>(begun.is_object() && begun.contains("space") && begun.contains("command"), "tune", Where(), path,
                     ": describes no search; choose another --output_dir");
  const std::string trials = directory + "/trials.jsonl";
  return holds(trial_name(0)) || (holds("trials.jsonl") && std::filesystem::file_size(trials) > 0) ? begun : json();
}

}  // namespace

void check_command(const TuneOptions& options, const Space& space, CLI::App& app) {
  const CLI::App& command = *command_of(app, options.command);
  require(!options.command.empty() && options.command.front() == "train" && command.get_subcommands({}).empty(), "tune",
          Where(),
          "behind -- stands what all trials share, such as: cinta tune --space space.json -- train mlp --data ",
          "digits.csv");
  for (const char* name : of_the_search)
    require(!gives(options.command, name), "tune", Where(), "--", name, " is given to the trials by the search");
  bool evaluates = false;
  std::map<const CLI::Option*, std::string> chosen;
  for (const Parameter& parameter : space) {
    const CLI::Option* option = nullptr;
    for (const CLI::Option* known : command.get_options())
      if (known->check_lname(parameter.name)) option = known;
    if (!option) {
      const auto quoted = [](const std::string& near) { return "'" + near + "'"; };
      throw ValueError(join("[tune] ", options.space, ": '", parameter.name, "' is no option of ", command.get_name(),
                            hint(parameter.name, option_names(command), quoted)));
    }
    require(std::ranges::find(of_the_search, parameter.name) == std::end(of_the_search) && parameter.name != "config" &&
                parameter.name != "help",
            "tune", Where(), options.space, ": ", parameter.name, " is not to be chosen");
    const auto [other, is_first] = chosen.emplace(option, parameter.name);
    require(is_first, "tune", Where(), options.space, ": ", other->second, " and ", parameter.name, " are one option");
    for (const std::string& name : option->get_lnames())
      require(!gives(options.command, name), "tune", Where(), options.space, ": ", parameter.name,
              " is to be chosen, but the command gives it: --", name);
    evaluates |= parameter.name == "eval_steps" || parameter.name == "eval_strategy";
  }
  const Arguments words = settle(app, options.command).arguments;
  for (const char* name : {"await_verdict", "overwrite", "fast_dev_run"})  // the others are given once more, and count
    require(!gives(words, name), "tune", Where(), "--", name, " is given to the trials by the search, not by settings");
  require(options.pruner == "none" || evaluates || gives(words, "eval_steps") || gives(words, "eval_strategy"), "tune",
          Where(), "--pruner ", options.pruner, " needs evaluations on the way: --eval_strategy epoch or --eval_steps");
}

void open_search(const TuneOptions& options, const Space& space) {
  const std::string path = options.directory + "/search.json";
  nlohmann::ordered_json now;
  for (const Parameter& parameter : space) now["space"][parameter.name] = parameter.distribution;
  now["command"] = options.command;
  now["objective"] = options.objective;
  now["direction"] = options.direction;
  now["sampler"] = options.sampler;
  now["grid_points"] = options.grid_points;
  now["pruner"] = options.pruner;
  now["pruner_warmup"] = options.pruner_warmup;
  now["seed"] = options.seed;
  if (const json begun = search_begun(options.directory, path); !begun.is_null()) {
    std::string changed;
    for (const auto& [name, value] : now.items())
      if (const json before = begun.value(name, json()); json(value) != before)
        changed += join(changed.empty() ? "" : "; ", name, " ", value.dump(), ", begun with ", before.dump());
    require(changed.empty(), "tune", Where(), options.directory, " holds a search with other options: ", changed);
    return;
  }
  data::AtomicFile file(path);
  file.write_text(now.dump(2) + "\n");
  file.commit();
}

}  // namespace cinta::tools
