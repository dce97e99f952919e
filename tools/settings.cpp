// Layers of settings become one command line.
#include "tools/settings.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "cinta/core/error.h"
#include "tools/option_names.h"
#include "tools/settings_file.h"

namespace cinta::tools {
namespace {

/// Variables that are no option: the instruction set (backends/cpu/isa.h), and what the tests are told.
constexpr std::array other_variables{"CINTA_ISA", "CINTA_TEST_DATA", "CINTA_PYTHON"};

/// The options of all commands, without dashes.
std::set<std::string> all_options(const CLI::App& command) {
  std::set<std::string> names = option_names(command);
  for (const CLI::App* inner : command.get_subcommands({})) names.merge(all_options(*inner));
  return names;
}

/// Refuses a variable that no command knows: a value that somebody meant to give would be passed over.
void check_variables(const CLI::App& app) {
  const std::set<std::string> names = all_options(app);
  std::set<std::string> known(other_variables.begin(), other_variables.end());
  for (const std::string& name : names) known.insert(variable_name(name));
  for (char** at = environ; *at; ++at) {
    const std::string name(*at, std::strcspn(*at, "="));
    if (!name.starts_with(variable_prefix) || known.contains(name)) continue;
    std::string option = name.substr(std::strlen(variable_prefix));
    std::ranges::transform(option, option.begin(), [](unsigned char c) { return std::tolower(c); });
    throw ValueError(join("[config] the variable ", name, " of the environment is no option of any command",
                          hint(option, names, variable_name)));
  }
}

/// Adds an option and its value. The parser takes the word after `--name=` as the value where nothing follows the sign,
/// so an empty value stands as a word of its own.
void append(Arguments& arguments, const std::string& name, const std::string& value) {
  arguments.push_back(value.empty() ? name : name + "=" + value);
  if (value.empty()) arguments.emplace_back();
}

bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }
/// Whether the option is a number that may be left out, which is 1 then.
bool is_open_count(const CLI::Option& option) {
  return option.get_items_expected_min() == 0 && option.get_items_expected_max() == 1;
}

/// A value as the parser takes it: a truth in its own spelling, and as a number where the option is a count.
std::string parsed_spelling(const CLI::Option& option, const std::string& value) {
  const std::optional<bool> truth = truth_of(value);
  if (!truth) return value;
  return is_flag(option) ? (*truth ? "true" : "false") : is_open_count(option) ? (*truth ? "1" : "0") : value;
}

std::string spelled(const nlohmann::json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

/// The values of an option: the elements of a list, or, where it takes several, what commas part.
std::vector<std::string> items_of(const CLI::Option& option, const nlohmann::json& value) {
  std::vector<std::string> items;
  if (value.is_array())
    for (const auto& item : value) items.push_back(spelled(item));
  else if (option.get_expected_max() > 1)
    items = CLI::detail::split(spelled(value), ',');
  else
    items.push_back(spelled(value));
  return items;
}

/// How many words without a name in front the command takes.
int most_words(const CLI::App& command) {
  int most = 0;
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional()) most = std::max(most, option->get_items_expected_max());
  return most;
}

/// Collects values for one command; what is set first stays.
class Layers {
 public:
  Layers(const CLI::App& command, const Arguments& given) : command_(command), given_(given) {}

  /// Whether this is the option's value now.
  bool add(const CLI::Option& option, const nlohmann::json& value, const std::string& origin) {
    const std::string& name = option.get_lnames().front();
    if (given_value(given_, option)) return false;
    const auto [known, is_new] = origins.emplace(name, origin);
    require(is_new || known->second != origin || origin.starts_with(variable_prefix), "config", Where(), origin, ": ",
            name, " is given twice");
    if (!is_new) return false;
    for (const std::string& item : items_of(option, value))
      append(arguments, "--" + name, parsed_spelling(option, item));
    return true;
  }

  /// The file of settings that the option `name` names on the command line or in the environment, if it does.
  void add_file(const char* name) {
    const std::optional<std::string> path = settings_path(command_, given_, name);
    if (!path) return;
    const nlohmann::json settings = read_settings(*path);
    for (const auto& [key, value] : settings.items()) {
      if (key == task_key && is_task(command_)) continue;  // it has chosen the command (tools/command_words.h)
      const CLI::Option* known = find_option(command_, key);
      if (!known) {
        const auto quoted = [](const std::string& near) { return "'" + near + "'"; };
        throw ValueError(join("[config] ", *path, ": '", key, "' is no option of ", command_.get_name(),
                              hint(key, option_names(command_), quoted)));
      }
      require<FileError>(key != "config" && key != "params", "config", Where(), *path, ": a file names no other file");
      require<FileError>(!value.is_object() && !value.is_null(), "config", Where(), *path, ": ", key, ": found ",
                         value.dump(), ", expected a number, a text, true, false or a list");
      require<FileError>(!value.is_array() || !value.empty(), "config", Where(), *path, ": ", key,
                         ": found [], expected at least one element");
      add(*known, value, *path);
    }
  }

  void add_environment() {
    for (const CLI::Option* option : named_options(command_))
      for (const std::string& spelling : option->get_lnames())
        if (const auto value = variable(spelling); value && add(*option, *value, variable_name(spelling)))
          mark_from_environment(*option);
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

/// A word in brackets so that the parser does not take it apart: a space changes no token.
std::string kept_whole(const std::string& word) {
  return word.starts_with("[") && word.ends_with("]") ? word + " " : word;
}

}  // namespace

std::string as_given(std::string word) {
  if (word.starts_with("[") && word.ends_with("] ")) word.pop_back();
  return word;
}

std::optional<bool> truth_of(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* yes : {"true", "1", "yes", "y", "t"})
    if (word == yes) return true;
  for (const char* no : {"false", "0", "no", "n", "f"})
    if (word == no) return false;
  return std::nullopt;
}

bool gives(const Arguments& arguments, const std::string& name) {
  return std::ranges::any_of(
      arguments, [&](const std::string& word) { return word == "--" + name || word.starts_with("--" + name + "="); });
}

CLI::App* command_of(CLI::App& app, const Arguments& arguments) {
  CLI::App* command = nullptr;
  depth_of(app, arguments, command);
  return command;
}

void take_settings_file(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) {
    take_settings_file(*command);
    if (command->get_require_subcommand_min() == 0 && !find_option(*command, "config"))
      command
          ->add_option_function<std::string>(
              "--config", [](const std::string&) {},
              "JSON file of options; CINTA_NAME in the environment and this line go before")
          ->type_name(settings_file);
  }
}

Settings settle(CLI::App& app, const Arguments& all) {
  const auto end = std::ranges::find(all, "--");  // what stands behind it is another command's
  const Arguments given(all.begin(), end);
  CLI::App* command = nullptr;
  const auto depth = static_cast<std::ptrdiff_t>(depth_of(app, given, command));
  if (depth > 0 && !gives(given, "help")) check_variables(app);
  Layers layers(*command, given);
  layers.add_file("params");
  layers.add_environment();
  layers.add_file("config");
  Settings out{{given.begin(), given.begin() + depth}, std::move(layers.origins)};
  out.arguments.insert(out.arguments.end(), layers.arguments.begin(), layers.arguments.end());
  const CLI::Option* option_before = nullptr;
  for (auto word = given.begin() + depth; word != given.end(); ++word) {
    const CLI::Option* option = word->starts_with("--") ? find_option(*command, word->substr(2)) : nullptr;
    const std::string next = word + 1 != given.end() ? *(word + 1) : "--";
    if (word->starts_with("--") && word->find('=') + 1 == word->size()) {
      append(out.arguments, word->substr(0, word->size() - 1), "");
    } else if (option && (is_flag(*option) || is_open_count(*option)) && truth_of(next) && most_words(*command) == 0) {
      append(out.arguments, *word, parsed_spelling(*option, next));
      ++word;
    } else if (option && is_open_count(*option) && next.starts_with("--")) {
      append(out.arguments, *word, "1");  // a count that may be left out
    } else {
      const bool is_value = option_before && option_before->get_items_expected_max() > 0;
      const bool is_list = !is_value && most_words(*command) > 1;
      out.arguments.push_back(is_list ? kept_whole(*word) : *word);
    }
    option_before = option;
  }
  const bool lists = most_words(*command) > 1;
  std::transform(end, all.end(), std::back_inserter(out.arguments),
                 [&](const std::string& word) { return lists ? kept_whole(word) : word; });
  return out;
}

}  // namespace cinta::tools
