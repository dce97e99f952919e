// What becomes of a thread that the system has taken off its processor, for another program, with a tile in its hands:
// who waits for the tile lends it a processor.
#pragma once
#include <pthread.h>
#include <time.h>

#include <atomic>

namespace cinta {

/// A thread that others wait for at times. Nothing happens to one that runs, or that may not use the others'
/// processors.
class RescuableThread {
 public:
  /// From the thread itself: others may wait for it from now on.
  void begin();
  /// From the thread itself: nobody waits for it any more. It returns to where it was if it was lent a processor.
  void end();
  /// From the thread itself, one of `threads`, before it begins: leaves the processor that `other` has, if that is its
  /// own and there are as many as threads.
  void keep_away_from(const RescuableThread& other, int threads);

  /// From another thread, which then sleeps: moves this one to the caller's processor if it is at work, does not run,
  /// and was not moved since it began. True iff it was moved.
  bool lend_processor();
  /// The same, but this one stays there and the caller goes where it was.
  bool trade_processors();

 private:
  enum class State { away, at_work, moving };
  bool runs() const;
  bool move_here(bool lent);

  std::atomic<State> state_{State::away};
  std::atomic<bool> moved_{false}, lent_{false};  ///< since it began
  std::atomic<int> processor_{-1};                ///< where it began, or was given another's place
  bool known_ = false;
  pthread_t thread_{};
  clockid_t clock_{};  ///< of the time that it has run
};

}  // namespace cinta
