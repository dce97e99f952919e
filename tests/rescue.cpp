// Threads that have work and no processor, since other programs have it: who waits lends them one, and afterwards all
// may run where they might before.
#include "cinta/backends/cpu/rescue.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "cinta/backends/cpu/team.h"

using cinta::RescuableThread;

namespace {

using Clock = std::chrono::steady_clock;

std::vector<int> processors() {
  cpu_set_t set;
  pthread_getaffinity_np(pthread_self(), sizeof set, &set);
  std::vector<int> all;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(static_cast<size_t>(i), &set)) all.push_back(i);
  return all;
}

void bind_to(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(static_cast<size_t>(processor), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/// Another program: some threads that are busy on one processor.
class Neighbour {
 public:
  Neighbour(int processor, int threads) {
    for (int i = 0; i < threads; ++i)
      threads_.emplace_back([this, processor] {
        bind_to({processor});
        while (!ends_) {
        }
      });
  }
  ~Neighbour() {
    ends_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> ends_{false};
  std::vector<std::thread> threads_;
};

/// A thread that is at work on a processor of its choice until it is told to end, and where it was seen.
struct Worker {
  explicit Worker(int processor) {
    body = std::thread([this, processor] {
      const std::vector<int> all = processors();
      const auto go = [&] { bind_to({processor}), bind_to(all); };
      go();
      thread.begin();
      for (at_work = true; !ends; at = sched_getcpu())
        if (strayed.exchange(false)) go();
      thread.end();
      ended_at = sched_getcpu();
      allowed_after = processors();
    });
    while (!at_work) std::this_thread::yield();
  }
  void join() {
    ends = true;
    body.join();
  }
  RescuableThread thread;
  std::atomic<bool> at_work{false}, ends{false}, strayed{false};
  std::atomic<int> at{-1};
  int ended_at = -1;
  std::vector<int> allowed_after;
  std::thread body;
};

/// Tries until it is done or it has taken too long.
template <class F>
bool in_time(F f) {
  for (const auto until = Clock::now() + std::chrono::seconds(20); Clock::now() < until;)
    if (f()) return true;
  return false;
}

}  // namespace

TEST_CASE("a thread without a processor is lent one", "[rescue]") {
  const std::vector<int> all = processors();
  if (all.size() < 2) {
    WARN("skipped: one processor");
    return;
  }
  const int mine = all[0], its = all[1];
  for (const bool trades : {false, true}) {
    INFO((trades ? "trades" : "lends"));
    bind_to(all);
    const Neighbour neighbour(its, 4);
    Worker worker(its);
    int here = -1, after = -1;
    CHECK(in_time([&] {
      bind_to({mine});
      bind_to(all);
      here = sched_getcpu();
      worker.strayed = worker.at == here;  // the system has moved it
      if (worker.strayed) return false;
      if (!(trades ? worker.thread.trade_processors() : worker.thread.lend_processor())) return false;
      after = sched_getcpu();
      return true;
    }));
    if (trades) CHECK(after == its);
    CHECK_FALSE(worker.thread.lend_processor());  // once is enough
    CHECK(in_time([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return worker.at == here;
    }));
    worker.join();
    if (!trades) CHECK(worker.ended_at == its);
    CHECK(worker.allowed_after == all);
    CHECK(processors() == all);
  }
}

TEST_CASE("a thread without work, or bound to its processor, stays where it is", "[rescue]") {
  const std::vector<int> all = processors();
  if (all.size() < 2) {
    WARN("skipped: one processor");
    return;
  }
  RescuableThread never_began;
  CHECK_FALSE(never_began.lend_processor());
  RescuableThread done;
  std::thread([&] { done.begin(), done.end(); }).join();
  CHECK_FALSE(done.lend_processor());
  CHECK_FALSE(done.trade_processors());

  std::atomic<bool> at_work{false}, ends{false}, stays{false};
  RescuableThread bound;
  std::thread asleep([&] {
    bind_to({all[1]});
    bound.begin();
    at_work = true;
    while (!ends) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    bound.end();
    stays = processors() == std::vector<int>{all[1]};
  });
  while (!at_work) std::this_thread::yield();
  bind_to({all[0]});
  for (int i = 0; i < 100; ++i) CHECK_FALSE(bound.lend_processor());
  bind_to(all);
  ends = true;
  asleep.join();
  CHECK(stays);
}

TEST_CASE("a thread leaves the processor that another needs", "[rescue]") {
  const std::vector<int> all = processors();
  if (all.size() < 2) {
    WARN("skipped: one processor");
    return;
  }
  const auto stay_on = [&](int processor) { bind_to({processor}), bind_to(all); };
  RescuableThread one, other;
  stay_on(all[0]);
  one.begin();
  int left = 0;
  for (int i = 0; i < 20; ++i) {
    stay_on(all[0]);
    other.keep_away_from(one, 2);
    left += sched_getcpu() != all[0];
  }
  CHECK(left >= 15);  // the system moves threads, too, but seldom between two lines
  stay_on(all[0]);
  other.keep_away_from(one, static_cast<int>(all.size()) + 1);  // there is no room elsewhere
  CHECK(processors() == all);
  one.end();
}

TEST_CASE("a team beside busy neighbours does every tile once, and its threads stay free", "[rescue]") {
  const std::vector<int> all = processors();
  if (all.size() < 2) {
    WARN("skipped: one processor");
    return;
  }
  for (const int threads : {2, static_cast<int>(all.size())}) {
    cinta::Team team(threads);
    for (const int processor : {all[0], all[1]}) {
      const Neighbour neighbour(processor, 1);
      constexpr int64_t tiles = 24;
      std::vector<std::atomic<int>> visits(tiles);
      int loops = 0;
      for (const auto until = Clock::now() + std::chrono::milliseconds(500); Clock::now() < until; ++loops)
        team.claim(
            tiles,
            [](const void* counts, int64_t tile) {
              for (const auto until = Clock::now() + std::chrono::microseconds(20 + tile % 5 * 40);
                   Clock::now() < until;) {
              }
              ++(*static_cast<std::vector<std::atomic<int>>*>(const_cast<void*>(counts)))[static_cast<size_t>(tile)];
            },
            &visits);
      for (const auto& count : visits) REQUIRE(count == loops);
    }
    std::vector<std::vector<int>> allowed(static_cast<size_t>(threads));
    team.each(
        [](const void* to, int64_t i) {
          (*static_cast<std::vector<std::vector<int>>*>(const_cast<void*>(to)))[static_cast<size_t>(i)] = processors();
        },
        &allowed);
    for (const std::vector<int>& of_thread : allowed) CHECK(of_thread == all);
  }
}
