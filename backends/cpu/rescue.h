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
  /// From the thread itself, before it begins: leaves the processor that `other` has, if that is its own.
  void keep_away_from(const RescuableThread& other);

  /// From another thread, which then sleeps: moves this one to the caller's processor if it is at work and does not
  /// run. True iff it was moved.
  bool lend_processor();
  /// The same, but this one stays there and the caller goes where it was.
  bool trade_processors();

 private:
  enum class State { away, at_work, moving };
  bool runs() const;
  bool move_here(bool lent);

  std::atomic<State> state_{State::away};
  std::atomic<bool> lent_{false};
  std::atomic<int> processor_{-1};  ///< where it began
  bool known_ = false;
  pthread_t thread_{};
  clockid_t clock_{};  ///< of the time that it has run
};

}  // namespace cinta
