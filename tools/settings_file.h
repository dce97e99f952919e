// Files of settings, which are flat JSON objects of option names, and the variables of the environment that say the
// same.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cinta::tools {

/// The options of a command that have a long name and are no --help.
std::vector<const CLI::Option*> named_options(const CLI::App& command);
/// The option that is called so, without dashes; null when none is.
const CLI::Option* find_option(const CLI::App& command, const std::string& name);

/// What begins the name of every variable that gives an option.
inline constexpr const char* variable_prefix = "CINTA_";
/// The variable that gives an option: `CINTA_` and its name in capitals.
std::string variable_name(const std::string& option);
/// What the environment says about an option; nothing where its variable is not set, or empty.
std::optional<std::string> variable(const std::string& option);

/// Whether a value of the option was given, anywhere.
bool is_given(const CLI::App& command, const std::string& name);
/// Notes that the value of an option is what the environment says.
void mark_from_environment(const CLI::Option& option);
/// Throws ValueError where the option was given although it has no effect `because` ("with --save_strategy no"), unless
/// it is `effective`. What the environment says is about every command, and so may have none here.
void require_effect(const CLI::App& command, const std::string& name, bool effective, const std::string& because);

/// The value that the words `--name value` or `--name=value` among `given` give an option.
std::optional<std::string> given_value(const std::vector<std::string>& given, const CLI::Option& option);

/// The file of settings that the option `name` of `command` names, on the command line or in the environment.
std::optional<std::string> settings_path(const CLI::App& command, const std::vector<std::string>& given,
                                         const std::string& name);
/// Throws FileError for a file that is no JSON object.
nlohmann::json read_settings(const std::string& path);

/// The key and the option that say which training is meant, as the word behind `train` does.
inline constexpr const char* task_key = "task";

/// Whether the command is one of those below `train`.
bool is_task(const CLI::App& command);
/// Whether the command trains, or searches for what trains: what CINTA_CONFIG says is about that.
bool is_training(const CLI::App& command);

}  // namespace cinta::tools
