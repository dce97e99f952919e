// What somebody meant who gave a name that is none.
#pragma once
#include <functional>
#include <set>
#include <string>

namespace CLI {
class App;
}

namespace cinta::tools {

/// Of `known` the name that takes the fewest edits; empty where that is more than half of it.
std::string nearest_of(const std::string& name, const std::set<std::string>& known);

/// The long names of a command's options, without dashes.
std::set<std::string> option_names(const CLI::App& command);

/// What an error says behind the name of an option that is none: "; here that is --precision bf16" for one of other
/// trainers, else "; the nearest is " and the nearest of `known` as `spelled` spells it, else nothing.
std::string hint(const std::string& name, const std::set<std::string>& known,
                 const std::function<std::string(const std::string&)>& spelled);

/// The commands below `parent`, parted by commas.
std::string command_names(const CLI::App& parent);
/// What an error says behind the name of a command that is none: the nearest, and which there are.
std::string command_hint(const CLI::App& parent, const std::string& name);

}  // namespace cinta::tools
