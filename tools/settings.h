// Where the value of an option comes from: the command line, else --params FILE (what a search chose), else CINTA_NAME
// in the environment, else --config FILE, else its default. The parser sees one command line, in which what was found
// elsewhere stands too.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/commands.h"

namespace CLI {
class App;
}

namespace cinta::tools {

/// The type name of an option that names a file of settings.
inline constexpr const char* settings_file = "SETTINGS";

/// A command line without the program's name.
using Arguments = std::vector<std::string>;

struct Settings {
  Arguments arguments;                         ///< for the parser
  std::map<std::string, std::string> origins;  ///< option without dashes -> where its value came from
};

/// Lets every command below `app` read a file of settings that --config names.
void take_settings_file(CLI::App& app);

/// Adds what the environment and the files named in `given` say about options of the command that `given` names.
/// Files are flat JSON objects of option names. Throws FileError for a file that is not, ValueError for a key that is
/// no option and for a variable that is one of no command, naming the nearest. `--flag True` becomes `--flag=true`, a
/// count that is left out 1, and a list's word in brackets gets a blank behind it, as the parser would take it apart.
Settings settle(CLI::App& app, const Arguments& given);
/// A word without that blank.
std::string as_given(std::string word);

/// The command of `app` that the first words of `arguments` name: `app` itself when none does.
CLI::App* command_of(CLI::App& app, const Arguments& arguments);

/// Whether `arguments` give the option `name`.
bool gives(const Arguments& arguments, const std::string& name);

/// What a word means that users of the HF Trainer write behind a flag: True, False, yes, no, 1, 0, in small letters or
/// not; nothing for another word.
std::optional<bool> truth_of(std::string word);

/// That a command's settings are to be shown instead of its work being done.
struct ConfigRequest {
  bool as_json = false;
};
/// For `cinta config COMMAND ...`: takes what is config's own off `arguments`, names the command (`train bert` unless
/// one is named) and lets it be parsed without the options that its work needs. Otherwise nothing.
std::optional<ConfigRequest> take_config_request(CLI::App& app, Arguments& arguments);
/// Every option of a command that was parsed, what it comes to and where that came from.
void print_settings(const CLI::App& command, const Settings& settings, const ConfigRequest& request,
                    const ResolvedValues& resolved);

}  // namespace cinta::tools
