// `cinta completion`: the words that bash may complete, taken from the commands themselves.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "tools/commands.h"

namespace cinta::tools {
namespace {

/// The case labels of all commands below `app`, and a branch for each that sets what may follow it.
void describe(const CLI::App& app, const std::string& path, std::string& known, std::string& branches) {
  std::string words, taking;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    words += " " + command->get_name();
    known += (known.empty() ? "" : "|") + path + "/" + command->get_name();
    describe(*command, path + "/" + command->get_name(), known, branches);
  }
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) {
      words += " --" + name;
      if (option->get_items_expected_max() > 0) taking += " --" + name;
    }
  branches += "    \"" + path + "\") words=\"" + words + " \" taking=\"" + taking + " \" ;;\n";
}

}  // namespace

void add_completion(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("completion", "what makes bash complete this command: source <(cinta completion)");
  set_work(*command, [&app] {
    std::string known, branches;
    describe(app, "", known, branches);
    std::printf(R"(# Completion of the command cinta for bash.
_cinta() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path= words taking i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case $path/${COMP_WORDS[i]} in
    %s) path+=/${COMP_WORDS[i]} ;;
    esac
  done
  case $path in
%s  esac
  if [[ $taking == *" $before "* ]]; then
    COMPREPLY=($(compgen -f -- "$word"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  fi
}
complete -o filenames -F _cinta cinta
)",
                known.c_str(), branches.c_str());
  });
}

}  // namespace cinta::tools
