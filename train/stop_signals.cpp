// A handler that only writes a number down, on a stack of its own.
#include "cinta/train/stop_signals.h"

#include <initializer_list>

namespace cinta::train {
namespace {
volatile std::sig_atomic_t signal_number = 0;
extern "C" void note_signal(int number) { signal_number = number == SIGINT ? SIGINT : SIGTERM; }
}  // namespace

const volatile std::sig_atomic_t& stop_signal() { return signal_number; }

void stop_on_signals() {
  // Some of oneDNN's products run with the stack pointer in a block of the heap. On that stack a handler's frame would
  // overwrite what others keep below the block.
  alignas(64) static char bytes[1 << 16];
  const stack_t stack{.ss_sp = bytes, .ss_flags = 0, .ss_size = sizeof bytes};
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_ONSTACK;
  // SIGUSR1: schedulers send it some time before they kill.
  for (int number : {SIGINT, SIGTERM, SIGUSR1}) sigaction(number, &action, nullptr);
  struct sigaction of_terminal {};
  sigaction(SIGHUP, nullptr, &of_terminal);
  action.sa_flags = SA_ONSTACK;  // a terminal that is closed sends it by its shell, and by the system once more
  if (of_terminal.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup has it ignored
  std::signal(SIGPIPE, SIG_IGN);  // that nobody reads its progress any more ends no run
}

}  // namespace cinta::train
