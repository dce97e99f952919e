// Moves the command's words, and adds the one that --task or a file says.
#include "tools/command_words.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cinta/core/error.h"
#include "tools/option_names.h"
#include "tools/settings.h"
#include "tools/settings_file.h"

namespace cinta::tools {
namespace {

/// Whether `word` is an option, of any command, and `next` behind it its value: any where it needs one, else a truth,
/// or a number where it is a count that may be left out.
bool takes_value(const CLI::App& command, const std::string& word, const std::string& next) {
  if (!word.starts_with("--")) return false;
  const CLI::Option* option = find_option(command, word.substr(2));
  const bool number = !next.empty() && next.find_first_not_of("0123456789") == next.npos;
  return (option && (option->get_items_expected_min() > 0 || truth_of(next) ||
                     (option->get_items_expected_max() > 0 && number))) ||
         std::ranges::any_of(command.get_subcommands({}),
                             [&](const CLI::App* inner) { return takes_value(*inner, word, next); });
}

CLI::App* inner_command(const CLI::App& command, const std::string& name) {
  const auto inner = command.get_subcommands([&](const CLI::App* one) { return one->get_name() == name; });
  return inner.empty() ? nullptr : const_cast<CLI::App*>(inner.front());
}

/// Puts the words that name commands first. Only options and their values may stand before them.
void bring_forward(const CLI::App& app, Arguments& words) {
  const CLI::App* command = &app;
  auto place = words.begin();
  for (auto at = place; at != words.end(); ++at) {
    if (at->starts_with("-") || (at != words.begin() && takes_value(app, *(at - 1), *at))) continue;
    command = inner_command(*command, *at);
    if (!command) return;
    std::rotate(place, at, at + 1);
    ++place;
  }
}

/// A word that says what to train, and who says it.
struct Claim {
  std::string task, origin;
  bool may_differ = false;  ///< the environment speaks to every command, and so not about this one
};

/// Takes --task and its value off the words.
void take_task_options(Arguments& words, std::vector<Claim>& claims) {
  const std::string option = std::string("--") + task_key;
  for (auto at = words.begin(); at != words.end();) {
    const bool joined = at->starts_with(option + "=");
    if (!joined && *at != option) {
      ++at;
      continue;
    }
    require(joined || at + 1 != words.end(), "train", Where(), option, " needs a value");
    claims.push_back({joined ? at->substr(option.size() + 1) : *(at + 1), option});
    at = words.erase(at, at + (joined ? 1 : 2));
  }
}

void add_file(const CLI::App& command, const Arguments& words, const char* name, std::vector<Claim>& claims) {
  const std::optional<std::string> path = settings_path(command, words, name);
  if (!path) return;
  const nlohmann::json settings = read_settings(*path);
  const auto found = settings.find(task_key);
  if (found == settings.end()) return;
  require<FileError>(found->is_string(), "config", Where(), *path, ": ", task_key, ": found ", found->dump(),
                     ", expected the name of a training");
  claims.push_back({found->get<std::string>(), *path});
}

/// Adds the word that says what `train` trains, unless it is there.
void name_task(const CLI::App& train, Arguments& words, const std::string& usual_task) {
  std::vector<Claim> claims;
  const bool named = words.size() > 1 && !words[1].starts_with("-");
  if (named && !inner_command(train, words[1])) return;  // which the parser says
  if (named) claims.push_back({words[1], "the command line"});
  take_task_options(words, claims);
  const CLI::App& any = *train.get_subcommands({}).front();  // the files of settings are options that all share
  add_file(any, words, "params", claims);
  if (const auto value = variable(task_key)) claims.push_back({*value, variable_name(task_key), true});
  add_file(any, words, "config", claims);
  if (!usual_task.empty()) claims.push_back({usual_task, "", true});
  if (claims.empty()) return;
  const Claim& first = claims.front();
  if (!named) {
    require(inner_command(train, first.task), "train", Where(), first.origin, ": there is no ", task_key, " '",
            first.task, "'", command_hint(train, first.task));
    words.insert(words.begin() + 1, first.task);
  }
  for (const Claim& claim : claims)
    require(claim.may_differ || claim.task == first.task, "train", Where(), claim.origin, " is about the ", task_key,
            " '", claim.task, "', but ", first.origin, " names '", first.task, "'");
}

/// Whether another command may stand behind `--`.
bool takes_command(const CLI::App& command) { return command.get_option_no_throw("command") != nullptr; }

}  // namespace

void name_command(CLI::App& app, Arguments& words, const std::string& usual_task) {
  const auto dashes = std::ranges::find(words, "--");
  Arguments behind(dashes, words.end());
  words.erase(dashes, words.end());
  bring_forward(app, words);
  if (!usual_task.empty() && (words.empty() || words.front().starts_with("-"))) words.insert(words.begin(), "train");
  if (!words.empty() && words.front() == "train") name_task(*inner_command(app, "train"), words, usual_task);
  if (!behind.empty() && takes_command(*command_of(app, words))) {
    Arguments inner(behind.begin() + 1, behind.end());
    name_command(app, inner);
    behind.erase(behind.begin() + 1, behind.end());
    behind.insert(behind.end(), inner.begin(), inner.end());
  }
  words.insert(words.end(), behind.begin(), behind.end());
}

}  // namespace cinta::tools
