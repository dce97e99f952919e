// The `cinta` command. Exit codes: 0 done, 2 wrong input, 1 our own failure, 3 a trial that its search gave up, 130 and
// 143 after a clean stop on SIGINT and SIGTERM.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <new>

#include "cinta/core/error.h"
#include "tools/command_words.h"
#include "tools/commands.h"
#include "tools/option_names.h"
#include "tools/settings.h"

namespace cinta::tools {

int exit_code = 0;
std::string command_line = "cinta";
const char* const version = CINTA_VERSION;

namespace {

struct Work {
  std::function<void()> run;
  std::function<ResolvedValues()> resolved;
};

std::map<const CLI::App*, Work>& works() {
  static std::map<const CLI::App*, Work> all;
  return all;
}

/// What the parser says of arguments it does not know, with the option that was probably meant.
std::string with_nearest(const CLI::ParseError& error, CLI::App& app, const Arguments& arguments) {
  const std::string message = error.what();
  const bool names_it = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  CLI::App& command = *command_of(app, arguments);
  if (command.get_require_subcommand_min() > 0) {
    std::string path;
    for (const CLI::App* at = &command; at != &app; at = at->get_parent()) path = at->get_name() + " " + path;
    const size_t depth = static_cast<size_t>(std::ranges::count(path, ' '));
    const bool named = arguments.size() > depth && !arguments[depth].starts_with("-");
    if (named)
      return join("no command is called '", path, arguments[depth], "'", command_hint(command, arguments[depth]));
    if (depth > 0) return join(path, "needs one of the commands ", command_names(command));
  }
  for (const std::string& word : app.remaining(true))
    if (word.starts_with("--")) {
      const auto dashed = [](const std::string& near) { return "--" + near; };
      const std::string meant = hint(word.substr(2, word.find('=') - 2), option_names(command), dashed);
      if (!meant.empty()) return (names_it ? message : "no option is called " + word) + meant;
    }
  return message;
}

std::string fault_of_empty(const std::string& word) { return word.empty() ? "a number, given nothing" : ""; }

std::string fault_of_integer(const std::string& word) {
  errno = 0;
  const long long nearest = std::strtoll(word.c_str(), nullptr, 0);
  return errno != ERANGE ? "" : join(nearest > 0 ? "less than 2^63" : "at least -2^63", ", given ", word);
}

std::string fault_of_unsigned(const std::string& word) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  const bool fits = error == std::errc() && end == word.data() + word.size();
  return fits ? "" : join("a whole number of at most 64 bits, given ", word);
}

/// The parser takes an empty word for 0, and a whole number that its type does not hold for another one.
void check_numbers(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    const std::string type = option->get_type_name();
    const auto is = [&](const char* name) { return type.starts_with(name); };
    const bool integer = is("INT"), natural = is("UINT");
    if (integer || natural || is("FLOAT") || is("WIDTHS")) option->check({fault_of_empty, "", ""});
    if (integer) option->check({fault_of_integer, "", ""});
    if (natural) option->check({fault_of_unsigned, "", ""});
  }
  for (CLI::App* inner : command.get_subcommands({})) check_numbers(*inner);
}

/// A word that a shell would take apart stands in quotes.
std::string quoted(const std::string& word) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(plain) == word.npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

/// " (from CINTA_SEED)" where a message speaks of an option that does not come from the command line.
std::string origin_in(const std::string& message, const Settings& settings) {
  for (const auto& [name, origin] : settings.origins) {
    const size_t at = message.find("--" + name);
    if (at != message.npos && message.find_first_of(": =", at) == at + 2 + name.size()) return " (from " + origin + ")";
  }
  return "";
}

}  // namespace

void set_work(const CLI::App& command, std::function<void()> work, std::function<ResolvedValues()> resolved) {
  works()[&command] = {std::move(work), std::move(resolved)};
}

/// Adds the commands, settles the options of the one that was named and does its work.
int run(int argc, char** argv) {
  CLI::App app{"Cinta trains small deep-learning models.", "cinta"};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("cinta ") + version);
  for (auto add : {add_train, add_eval, add_fill, add_predict, add_tokenize, add_inspect, add_convert, add_trace,
                   add_plan, add_bench, add_formats, add_tune, add_config, add_completion})
    add(app);
  take_settings_file(app);
  check_numbers(app);
  Arguments given(argv + 1, argv + argc);
  for (const std::string& word : given) command_line += " " + quoted(word);
  const std::optional<ConfigRequest> request = take_config_request(app, given);
  if (!request) name_command(app, given);
  const Settings settings = settle(app, given);
  try {
    Arguments reversed(settings.arguments.rbegin(), settings.arguments.rend());  // the order that the parser takes
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    throw ValueError(with_nearest(error, app, given) + origin_in(error.what(), settings) +
                     "; --help shows what there is");
  }
  const CLI::App& command = *command_of(app, given);
  const Work& work = works().at(&command);
  const ResolvedValues resolved = work.resolved ? work.resolved() : ResolvedValues();  // before any data is read
  if (request)
    print_settings(command, settings, *request, resolved);
  else
    work.run();
  return exit_code;
}

}  // namespace cinta::tools

int main(int argc, char** argv) {
  using namespace cinta;
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error to report
  // What is printed goes nowhere where the caller has closed it, and not into the next file that is opened.
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", O_RDWR);
  try {
    const int code = tools::run(argc, argv);
    require<FileError>(std::fflush(stdout) == 0 && !std::ferror(stdout), "output", Where(),
                       "what was printed could not be written to its end");
    return code;
  } catch (const InputError& error) {
    std::fprintf(stderr, "cinta: %s\n", std::string(error.text()).c_str());
    return 2;
  } catch (const std::filesystem::filesystem_error& error) {  // of a path that the system does not even look up
    std::fprintf(stderr, "cinta: %s: %s\n", error.path1().c_str(), error.code().message().c_str());
    return 2;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "cinta: out of memory\n");
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cinta: %s\n", error.what());
    return 1;
  }
}
