// Stopping a run cleanly with Ctrl-C: what RunOptions::stop points to.
#pragma once
#include <csignal>

namespace cinta::train {

/// Where the number of a signal is noted that asks for an end, or nowhere.
class StopFlag {
 public:
  StopFlag(const volatile std::sig_atomic_t* place = nullptr) : place_(place) {}
  /// The signal, or 0.
  int number() const { return place_ ? static_cast<int>(*place_) : 0; }

 private:
  const volatile std::sig_atomic_t* place_;
};

/// The signal that asked the program to stop, or 0.
const volatile std::sig_atomic_t& stop_signal();

/// From now on the first SIGINT or SIGTERM sets stop_signal(); a second one ends the program at once. SIGUSR1, which
/// schedulers send some time before they kill, and SIGHUP, unless it is ignored, count as SIGTERM; a closed terminal
/// sends that twice, which ends nothing at once. SIGPIPE is ignored, here and in programs that this one starts. Called
/// by the thread that trains, which is the program's first.
void stop_on_signals();

}  // namespace cinta::train
