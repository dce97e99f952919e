// What must hold before the first trial.
#include "tools/tune_search.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "cinta/data/file.h"
#include "cinta/data/strict_json.h"
#include "tools/commands.h"
#include "tools/option_names.h"

namespace cinta::tools {

using nlohmann::json;

void check_command(const TuneOptions& options, const Space& space, CLI::App& app) {
  const CLI::App& command = *command_of(app, options.command);
  require(!options.command.empty() && options.command.front() == "train" && command.get_subcommands({}).empty(), "tune",
          Where(),
          "behind -- stands what all trials share, such as: cinta tune --space space.json -- train mlp --data ",
          "digits.csv");
  for (const char* name : {"params", "result", "await_verdict", "output_dir", "resume", "overwrite", "fast_dev_run"})
    require(!gives(options.command, name), "tune", Where(), "--", name, " is given to the trials by the search");
  bool evaluates = false;
  for (const Parameter& parameter : space) {
    const CLI::Option* option = nullptr;
    for (const CLI::Option* known : command.get_options())
      if (known->check_lname(parameter.name)) option = known;
    if (!option) {
      const auto quoted = [](const std::string& near) { return "'" + near + "'"; };
      throw ValueError(join("[tune] ", options.space, ": '", parameter.name, "' is no option of ", command.get_name(),
                            hint(parameter.name, option_names(command), quoted)));
    }
    for (const std::string& name : option->get_lnames())
      require(!gives(options.command, name), "tune", Where(), options.space, ": ", parameter.name,
              " is to be chosen, but the command gives it: --", name);
    evaluates |= parameter.name == "eval_steps" || parameter.name == "eval_strategy";
  }
  const Arguments words = settle(app, options.command).arguments;
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
  const bool begun_there = std::filesystem::exists(options.directory + "/" + trial_name(0));
  if (begun_there && std::filesystem::exists(path)) {
    const json begun = data::parse_json(data::read_file(path), "tune", path);
    std::string changed;
    for (const auto& [name, value] : now.items())
      if (const json before = begun.is_object() ? begun.value(name, json()) : json(); json(value) != before)
        changed += join(changed.empty() ? "" : "; ", name, " ", value.dump(), ", begun with ", before.dump());
    require(changed.empty(), "tune", Where(), options.directory, " holds a search with other options: ", changed);
    return;
  }
  data::AtomicFile file(path);
  file.write_text(now.dump(2) + "\n");
  file.commit();
}

}  // namespace cinta::tools
