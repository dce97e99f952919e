// The commands of `cinta`: each file adds one to the command line.
#pragma once
#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace cinta::tools {

/// What main() returns after a clean stop on a signal: 128 + its number.
extern int exit_code;

/// The program's name and arguments, as a shell would read them.
extern std::string command_line;
extern const char* const version;

/// What a command does once its options are read.
void set_work(const CLI::App& command, std::function<void()> work);

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
