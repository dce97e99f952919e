// `cinta config COMMAND ...`: what every option of a command would be, and where its value comes from.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/commands.h"
#include "tools/settings.h"

namespace cinta::tools {
namespace {

std::string value_of(const CLI::Option& option) {
  if (option.count() == 0) return option.get_default_str();
  std::string out;
  for (const std::string& part : option.results()) out += (out.empty() ? "" : ",") + part;
  return out;
}

}  // namespace

void print_settings(const CLI::App& command, const Settings& settings, const ConfigRequest& request) {
  nlohmann::ordered_json all;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_lnames().empty() || option == command.get_help_ptr()) continue;
    const std::string& name = option->get_lnames().front();
    const auto origin = settings.origins.find(name);
    const std::string from = origin != settings.origins.end() ? origin->second
                             : option->count() > 0            ? "command line"
                                                              : "default";
    if (request.as_json)
      all[name] = {{"value", value_of(*option)}, {"from", from}};
    else
      std::printf("%-32s %-28s %s\n", name.c_str(), value_of(*option).c_str(), from.c_str());
  }
  if (request.as_json) std::printf("%s\n", all.dump(2).c_str());
}

void add_config(CLI::App& app) {
  CLI::App* config =
      app.add_subcommand("config", "show every option of a command, its value, and where that comes from");
  config->add_flag_callback(
      "--print", [] {}, "a table (what it does anyway)");
  config->add_flag_callback(
      "--json", [] {}, "JSON instead of a table");
  config->footer("cinta config train bert --config run.json --learning_rate 1e-3");
}

std::optional<ConfigRequest> take_config_request(CLI::App& app, Arguments& arguments) {
  if (arguments.empty() || arguments.front() != "config" || std::ranges::count(arguments, "--help")) return {};
  arguments.erase(arguments.begin());
  ConfigRequest request;
  request.as_json = std::erase(arguments, "--json") > 0;
  std::erase(arguments, "--print");
  if (arguments.empty() || arguments.front().starts_with("-")) arguments.insert(arguments.begin(), {"train", "bert"});
  for (CLI::Option* option : command_of(app, arguments)->get_options()) option->required(false);
  return request;
}

}  // namespace cinta::tools
