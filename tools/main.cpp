// The `cinta` command. Exit codes: 0 done, 2 wrong input, 1 our own failure, 130 and 143 after a clean stop on SIGINT
// and SIGTERM.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

#include "cinta/core/error.h"
#include "tools/commands.h"

namespace cinta::tools {

volatile std::sig_atomic_t stop_signal = 0;
int exit_code = 0;

namespace {
extern "C" void on_signal(int number) { stop_signal = number; }
}  // namespace

void stop_on_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (int number : {SIGINT, SIGTERM}) sigaction(number, &action, nullptr);
}

}  // namespace cinta::tools

int main(int argc, char** argv) {
  using namespace cinta;
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error to report
  CLI::App app{"Cinta trains small deep-learning models."};
  app.require_subcommand(1);
  tools::add_train(app);
  tools::add_eval(app);
  tools::add_fill(app);
  try {
    app.parse(argc, argv);
    return tools::exit_code;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    std::fprintf(stderr, "cinta: %s; --help shows what there is\n", error.what());
    return 2;
  } catch (const InputError& error) {
    std::fprintf(stderr, "cinta: %s\n", error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "cinta: out of memory\n");
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cinta: %s\n", error.what());
    return 1;
  }
}
