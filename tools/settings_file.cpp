// Where a file of settings is, and what is in it.
#include "tools/settings_file.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "cinta/core/error.h"
#include "cinta/data/file.h"
#include "cinta/data/strict_json.h"
#include "tools/settings.h"

namespace cinta::tools {

std::vector<const CLI::Option*> named_options(const CLI::App& command) {
  return command.get_options(
      [&](const CLI::Option* option) { return !option->get_lnames().empty() && option != command.get_help_ptr(); });
}

const CLI::Option* find_option(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* option : named_options(command))
    if (option->check_lname(name)) return option;
  return nullptr;
}

std::string variable_name(const std::string& option) {
  std::string out = variable_prefix + option;
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::toupper(c); });
  return out;
}

std::optional<std::string> variable(const std::string& option) {
  const char* value = std::getenv(variable_name(option).c_str());
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

bool is_given(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = find_option(command, name);
  return option && option->count() > 0;
}

namespace {

std::set<const CLI::Option*>& from_environment() {
  static std::set<const CLI::Option*> all;
  return all;
}

/// "train mlp"
std::string path_of(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent && parent->get_parent() ? path_of(*parent) + " " + command.get_name() : command.get_name();
}

}  // namespace

void mark_from_environment(const CLI::Option& option) { from_environment().insert(&option); }

void require_effect(const CLI::App& command, const std::string& name, bool effective, const std::string& because) {
  if (effective || !is_given(command, name)) return;
  const CLI::Option& option = *find_option(command, name);
  if (from_environment().contains(&option)) return;
  const std::string value = option.get_items_expected_max() > 0 ? " " + option.results().front() : "";
  throw ValueError(join("[", path_of(command), "] --", name, value, " has no effect ", because));
}

std::optional<std::string> given_value(const std::vector<std::string>& given, const CLI::Option& option) {
  for (size_t i = 0; i < given.size(); ++i)
    for (const std::string& name : option.get_lnames()) {
      if (given[i].starts_with("--" + name + "=")) return given[i].substr(name.size() + 3);
      if (given[i] == "--" + name) return i + 1 < given.size() ? given[i + 1] : std::string();
    }
  return std::nullopt;
}

std::optional<std::string> settings_path(const CLI::App& command, const std::vector<std::string>& given,
                                         const std::string& name) {
  const CLI::Option* option = find_option(command, name);
  if (!option || option->get_type_name() != settings_file) return std::nullopt;
  const std::optional<std::string> path = given_value(given, *option);
  require(!path || !path->empty(), "config", Where(), "--", name, " needs a value");
  return path || !is_training(command) ? path : variable(name);
}

nlohmann::json read_settings(const std::string& path) {
  nlohmann::json json =
      data::parse_json(data::read_file(path, data::maximum_file_bytes, Where()), "config", path, Where());
  require<FileError>(json.is_object(), "config", Where(), path, ": is not a JSON object of option names");
  return json;
}

bool is_task(const CLI::App& command) { return command.get_parent() && command.get_parent()->get_name() == "train"; }

bool is_training(const CLI::App& command) { return command.get_name() == "tune" || is_task(command); }

}  // namespace cinta::tools
