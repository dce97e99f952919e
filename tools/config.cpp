// `cinta config COMMAND ...`: what every option of a command would be, and where its value comes from.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cinta/core/error.h"
#include "tools/command_words.h"
#include "tools/commands.h"
#include "tools/settings.h"
#include "tools/settings_file.h"

namespace cinta::tools {
namespace {

std::string value_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return option.count() > 0 && option.as<bool>() ? "true" : "false";
  if (option.count() == 0) return option.get_default_str();
  std::string out;
  for (const std::string& part : option.results()) out += (out.empty() ? "" : ",") + part;
  return out;
}

/// A truth and a number as JSON has them, anything else (and a number that is not known yet) as text.
nlohmann::ordered_json json_of(const CLI::Option& option, const std::string& value) {
  const auto json = nlohmann::ordered_json::parse(value, nullptr, false);
  const bool flag = option.get_items_expected_max() == 0;
  const std::string type = option.get_type_name();
  const bool count = type.starts_with("INT") || type.starts_with("UINT") || type.starts_with("FLOAT");
  if ((flag && json.is_boolean()) || (count && json.is_number())) return json;
  if (double number = 0; count && CLI::detail::lexical_cast(value, number)) return number;  // .5, which is not JSON
  return value;
}

/// Takes a flag off the words, and what stands behind it where that is a truth; whether it is on.
bool take_flag(Arguments& words, const std::string& name) {
  bool on = false;
  for (auto at = words.begin(); at != words.end();) {
    const bool joined = at->starts_with(name + "=");
    if (*at != name && !joined) {
      ++at;
      continue;
    }
    std::optional<bool> truth;
    if (joined)
      truth = truth_of(at->substr(name.size() + 1));
    else if (at + 1 != words.end())
      truth = truth_of(*(at + 1));
    require(!joined || truth, "config", Where(), "a flag is True or False, given ", *at);
    on = truth.value_or(true);
    at = words.erase(at, at + (truth && !joined ? 2 : 1));
  }
  return on;
}

}  // namespace

void print_settings(const CLI::App& command, const Settings& settings, const ConfigRequest& request,
                    const ResolvedValues& resolved) {
  nlohmann::ordered_json all;
  for (const CLI::Option* option : named_options(command)) {
    const std::string& name = option->get_lnames().front();
    const auto origin = settings.origins.find(name);
    ResolvedValue value{value_of(*option), origin != settings.origins.end() ? origin->second
                                           : option->count() > 0            ? "command line"
                                                                            : "default"};
    if (const auto known = resolved.find(name); known != resolved.end()) {
      value.value = known->second.value;
      if (!known->second.from.empty()) value.from = known->second.from;
    }
    if (request.as_json)
      all[name] = {{"value", json_of(*option, value.value)}, {"from", value.from}};
    else
      std::printf("%-32s %-28s %s\n", name.c_str(), value.value.empty() ? "\"\"" : value.value.c_str(),
                  value.from.c_str());
  }
  if (request.as_json) std::printf("%s\n", all.dump(2).c_str());
}

void add_config(CLI::App& app) {
  CLI::App* config =
      app.add_subcommand("config", "show what every option of a command comes to, and where that comes from");
  config->add_flag_callback(
      "--print", [] {}, "a table (what it does anyway)");
  config->add_flag_callback(
      "--json", [] {}, "JSON instead of a table");
  config->footer("cinta config train bert --config run.json --learning_rate 1e-3");
}

std::optional<ConfigRequest> take_config_request(CLI::App& app, Arguments& arguments) {
  if (arguments.empty() || arguments.front() != "config" || gives(arguments, "help")) return {};
  arguments.erase(arguments.begin());
  const ConfigRequest request{.as_json = take_flag(arguments, "--json")};
  take_flag(arguments, "--print");
  name_command(app, arguments, "bert");
  for (CLI::Option* option : command_of(app, arguments)->get_options()) option->required(false);
  return request;
}

}  // namespace cinta::tools
