// Layers of settings become one command line.
#include "tools/settings.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cinta/data/file.h"

namespace cinta::tools {
namespace {

/// The options of a command that have a long name and are no --help.
std::vector<const CLI::Option*> named_options(const CLI::App& command) {
  return command.get_options(
      [&](const CLI::Option* option) { return !option->get_lnames().empty() && option != command.get_help_ptr(); });
}

const CLI::Option* find_option(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* option : named_options(command))
    if (option->check_lname(name)) return option;
  return nullptr;
}

/// The value that `arguments` give an option, in the form `--name value` or `--name=value`; null when they do not.
std::unique_ptr<std::string> given_value(const Arguments& arguments, const CLI::Option& option) {
  for (size_t i = 0; i < arguments.size(); ++i)
    for (const std::string& name : option.get_lnames()) {
      if (arguments[i].starts_with("--" + name + "="))
        return std::make_unique<std::string>(arguments[i].substr(name.size() + 3));
      if (arguments[i] == "--" + name)
        return std::make_unique<std::string>(i + 1 < arguments.size() ? arguments[i + 1] : std::string());
    }
  return nullptr;
}

std::string spelled(const nlohmann::json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

/// Collects values for one command; what is set first stays.
class Layers {
 public:
  Layers(const CLI::App& command, const Arguments& given) : command_(command), given_(given) {}

  void add(const CLI::Option& option, const nlohmann::json& value, const std::string& origin) {
    const std::string& name = option.get_lnames().front();
    if (given_value(given_, option) || !origins.emplace(name, origin).second) return;
    const nlohmann::json items = value.is_array() ? value : nlohmann::json::array({value});
    for (const auto& item : items) arguments.push_back("--" + name + "=" + spelled(item));
  }

  /// The file that the option `name` names on the command line, if it does.
  void add_file(const char* name) {
    const CLI::Option* option = find_option(command_, name);
    const auto path = option ? given_value(given_, *option) : nullptr;
    if (!path) return;
    const auto json = nlohmann::json::parse(data::read_file(*path), nullptr, false);
    require<FileError>(json.is_object(), "config", Where(), *path, ": is not a JSON object of option names");
    for (const auto& [key, value] : json.items()) {
      const CLI::Option* known = find_option(command_, key);
      if (!known) {
        const std::string near = nearest_option(command_, key);
        throw ValueError(join("[config] ", *path, ": '", key, "' is no option of ", command_.get_name(),
                              near.empty() ? "" : "; the nearest is '", near, near.empty() ? "" : "'"));
      }
      require<FileError>(!value.is_object() && !value.is_null(), "config", Where(), *path, ": ", key, ": found ",
                         value.dump(), ", expected a number, a text, true, false or a list");
      add(*known, value, *path);
    }
  }

  void add_environment() {
    for (const CLI::Option* option : named_options(command_)) {
      std::string variable = "CINTA_" + option->get_lnames().front();
      std::ranges::transform(variable, variable.begin(), [](unsigned char c) { return std::toupper(c); });
      if (const char* value = std::getenv(variable.c_str())) add(*option, value, variable);
    }
  }

  Arguments arguments;
  std::map<std::string, std::string> origins;

 private:
  const CLI::App& command_;
  const Arguments& given_;
};

/// How many of the words at the front name commands, one within the other.
size_t depth_of(CLI::App& app, const Arguments& arguments, CLI::App*& command) {
  size_t depth = 0;
  command = &app;
  while (depth < arguments.size()) {
    const auto inner = command->get_subcommands([&](CLI::App* one) { return one->get_name() == arguments[depth]; });
    if (inner.empty()) break;
    command = inner.front();
    ++depth;
  }
  return depth;
}

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

std::string nearest_option(const CLI::App& command, const std::string& name) {
  std::string nearest;
  size_t least = std::max<size_t>(2, name.size() / 2) + 1;
  for (const CLI::Option* option : named_options(command))
    for (const std::string& known : option->get_lnames())
      if (const size_t distance = edits(name, known); distance < least) least = distance, nearest = known;
  return nearest;
}

CLI::App* command_of(CLI::App& app, const Arguments& arguments) {
  CLI::App* command = nullptr;
  depth_of(app, arguments, command);
  return command;
}

Settings settle(CLI::App& app, const Arguments& given) {
  CLI::App* command = nullptr;
  const auto depth = static_cast<std::ptrdiff_t>(depth_of(app, given, command));
  Layers layers(*command, given);
  layers.add_file("params");
  layers.add_environment();
  layers.add_file("config");
  Settings out{{given.begin(), given.begin() + depth}, std::move(layers.origins)};
  out.arguments.insert(out.arguments.end(), layers.arguments.begin(), layers.arguments.end());
  out.arguments.insert(out.arguments.end(), given.begin() + depth, given.end());
  return out;
}

}  // namespace cinta::tools
