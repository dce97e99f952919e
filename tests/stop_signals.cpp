// A signal that stops a run: written down by a handler that needs nothing of the stack it interrupts.
#include "cinta/train/stop_signals.h"

#include <ucontext.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

using namespace cinta;

namespace {

/// Puts back what handled signals before.
class Handlers {
 public:
  Handlers() {
    sigaltstack(nullptr, &stack_);
    sigaction(SIGINT, nullptr, &interrupt_);
    sigaction(SIGTERM, nullptr, &terminate_);
    sigaction(SIGHUP, nullptr, &hang_up_);
  }
  ~Handlers() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
    sigaction(SIGHUP, &hang_up_, nullptr);
    sigaltstack(&stack_, nullptr);
  }

 private:
  stack_t stack_{};
  struct sigaction interrupt_ {
  }, terminate_{}, hang_up_{};
};

std::vector<char>* block = nullptr;
ucontext_t test_context, block_context;
bool untouched = false;

/// Raises SIGINT with the stack pointer in `block`, as code that computes there may be interrupted.
void interrupted_in_block() {
  std::raise(0);  // the loader has looked it up: the second call needs little of the stack
  char here = 0;
  const size_t below = static_cast<size_t>(&here - block->data()) - 1024;  // a signal's frame is larger than that
  std::fill_n(block->begin(), below, 'x');
  std::raise(SIGINT);
  untouched =
      std::count(block->begin(), block->begin() + static_cast<ptrdiff_t>(below), 'x') == static_cast<ptrdiff_t>(below);
}

}  // namespace

TEST_CASE("the handler leaves the stack that it interrupts alone", "[stop_signals]") {
  const Handlers restored;
  REQUIRE(train::stop_signal() == 0);
  train::stop_on_signals();
  std::vector<char> bytes(1 << 16);
  block = &bytes;
  getcontext(&block_context);
  block_context.uc_stack = {.ss_sp = bytes.data(), .ss_flags = 0, .ss_size = bytes.size()};
  block_context.uc_link = &test_context;
  makecontext(&block_context, interrupted_in_block, 0);
  swapcontext(&test_context, &block_context);
  CHECK(train::stop_signal() == SIGINT);
#ifndef __SANITIZE_THREAD__  // which calls handlers itself, from a frame of its own on the stack it finds
  CHECK(untouched);
#endif

  struct sigaction again {};
  sigaction(SIGINT, nullptr, &again);
  CHECK(again.sa_handler == SIG_DFL);  // a second one ends the program
  sigaction(SIGTERM, nullptr, &again);
  CHECK((again.sa_flags & SA_ONSTACK) != 0);
}

TEST_CASE("a closed terminal stops a run, unless it was started to outlive it", "[stop_signals]") {
  const Handlers restored;
  for (const auto handler : {SIG_DFL, SIG_IGN}) {
    std::signal(SIGHUP, handler);
    train::stop_on_signals();
    struct sigaction now {};
    sigaction(SIGHUP, nullptr, &now);
    CHECK((now.sa_handler == SIG_IGN) == (handler == SIG_IGN));
    CHECK(now.sa_handler != SIG_DFL);
    if (handler == SIG_IGN) continue;
    for (int twice = 0; twice < 2; ++twice) std::raise(SIGHUP);
    CHECK(train::stop_signal() == SIGTERM);
  }
}
