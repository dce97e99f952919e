// The commands of `cinta`: each file adds one to the command line.
#pragma once
#include <functional>
#include <map>
#include <string>

namespace CLI {
class App;
}

namespace cinta::tools {

/// What an option comes to, and why; an empty `from`: from where the option's value came.
struct ResolvedValue {
  std::string value, from = {};
};
/// By the option's name without dashes.
using ResolvedValues = std::map<std::string, ResolvedValue>;

/// What main() returns after a clean stop on a signal: 128 + its number.
extern int exit_code;

/// The program's name and arguments, as a shell would read them.
extern std::string command_line;
extern const char* const version;

/// What a command does once its options are read, and before that, what those options come to where that is more than
/// they say. The latter throws ValueError for options that do not go together.
void set_work(const CLI::App& command, std::function<void()> work, std::function<ResolvedValues()> resolved = {});

void add_train(CLI::App& app);
/// Add further kinds of training to the command `train`.
void add_train_bert(CLI::App& train);
void add_train_characters(CLI::App& train);
void add_train_classify(CLI::App& train);
void add_eval(CLI::App& app);
void add_config(CLI::App& app);
void add_predict(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_fill(CLI::App& app);
void add_inspect(CLI::App& app);
void add_convert(CLI::App& app);
void add_trace(CLI::App& app);
void add_plan(CLI::App& app);
void add_bench(CLI::App& app);
void add_completion(CLI::App& app);
void add_formats(CLI::App& app);
void add_tune(CLI::App& app);

}  // namespace cinta::tools
