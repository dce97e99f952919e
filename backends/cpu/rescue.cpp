// A thread is moved by allowing it one processor for a moment. That it does not run is seen from its clock, which
// stands still.
#include "cinta/backends/cpu/rescue.h"

#include <sched.h>

#include <chrono>

namespace cinta {
namespace {

/// The processors that a thread may use; none where the system does not say.
cpu_set_t allowed(pthread_t thread) {
  cpu_set_t set;
  if (pthread_getaffinity_np(thread, sizeof set, &set) != 0) CPU_ZERO(&set);
  return set;
}

cpu_set_t only(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (processor >= 0) CPU_SET(static_cast<size_t>(processor), &set);
  return set;
}

/// Moves a thread to one of the given processors, if it may use any of them, and leaves it free to go. One that moves
/// itself comes to the second call when it is there.
bool move(pthread_t thread, const cpu_set_t& to) {
  const cpu_set_t before = allowed(thread);
  cpu_set_t some;
  CPU_AND(&some, &before, &to);
  if (CPU_COUNT(&some) == 0 || pthread_setaffinity_np(thread, sizeof some, &some) != 0) return false;
  pthread_setaffinity_np(thread, sizeof before, &before);
  return true;
}

}  // namespace

void RescuableThread::begin() {
  if (!known_) {
    thread_ = pthread_self();
    known_ = pthread_getcpuclockid(thread_, &clock_) == 0;
  }
  if (!known_) return;
  processor_.store(sched_getcpu(), std::memory_order_relaxed);
  state_.store(State::at_work, std::memory_order_release);
}

void RescuableThread::end() {
  if (!known_) return;
  for (State seen = State::at_work; !state_.compare_exchange_strong(seen, State::away, std::memory_order_acq_rel);
       seen = State::at_work)
    sched_yield();  // who moves it may wait for the processor that it was given
  moved_.store(false, std::memory_order_relaxed);
  if (lent_.exchange(false, std::memory_order_relaxed)) move(thread_, only(processor_.load(std::memory_order_relaxed)));
}

void RescuableThread::keep_away_from(const RescuableThread& other, int threads) {
  const int here = sched_getcpu();
  if (here < 0 || here != other.processor_.load(std::memory_order_relaxed)) return;
  cpu_set_t elsewhere = allowed(pthread_self());
  if (CPU_COUNT(&elsewhere) < threads) return;
  CPU_CLR(static_cast<size_t>(here), &elsewhere);
  move(pthread_self(), elsewhere);
}

bool RescuableThread::lend_processor() { return move_here(true); }

bool RescuableThread::trade_processors() {
  const int processor = processor_.load(std::memory_order_relaxed);
  if (!move_here(false)) return false;
  move(pthread_self(), only(processor));
  return true;
}

bool RescuableThread::runs() const {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds while_watched{5};
  timespec before{}, after{};
  if (clock_gettime(clock_, &before) != 0) return true;
  for (const Clock::time_point until = Clock::now() + while_watched; Clock::now() < until;) {
  }
  return clock_gettime(clock_, &after) != 0 || before.tv_sec != after.tv_sec || before.tv_nsec != after.tv_nsec;
}

bool RescuableThread::move_here(bool lent) {
  State seen = State::at_work;
  // Whoever has moved it may still be on the processor that it waits for.
  if (state_.load(std::memory_order_acquire) != seen || moved_.load(std::memory_order_relaxed) || runs() ||
      !state_.compare_exchange_strong(seen, State::moving, std::memory_order_acq_rel))
    return false;
  const int here = sched_getcpu();
  const bool moved = !moved_.load(std::memory_order_relaxed) && move(thread_, only(here));
  if (moved) {
    moved_.store(true, std::memory_order_relaxed);
    lent_.store(lent, std::memory_order_relaxed);
    if (!lent) processor_.store(here, std::memory_order_relaxed);
  }
  state_.store(State::at_work, std::memory_order_release);
  return moved;
}

}  // namespace cinta
