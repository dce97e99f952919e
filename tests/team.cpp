// The threads of a loop over tiles: every tile once, whoever is late; several teams at once; a forked child without its
// helpers.
#include "cinta/backends/cpu/team.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "cinta/backends/threads.h"
#include "cinta/core/runtime.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"

using cinta::Team;

namespace {

/// Loops of 1 to 40 tiles one right behind the other, so that helpers come late to most; true iff each tile was done
/// once before its loop returned.
bool each_tile_once(Team& team, int loops) {
  std::vector<std::atomic<int>> visits(40);
  for (int loop = 0; loop < loops; ++loop) {
    const int64_t tiles = 1 + loop * 7 % 40;
    for (auto& visit : visits) visit.store(0, std::memory_order_relaxed);
    team.claim(
        tiles,
        [](const void* context, int64_t tile) {
          auto& all = *static_cast<std::vector<std::atomic<int>>*>(const_cast<void*>(context));
          all[static_cast<size_t>(tile)].fetch_add(1, std::memory_order_relaxed);
        },
        &visits);
    for (size_t tile = 0; tile < visits.size(); ++tile)
      if (visits[tile].load(std::memory_order_relaxed) != (static_cast<int64_t>(tile) < tiles)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a team does every tile once", "[team]") {
  for (const int size : {2, 3, 8}) {
    INFO(size << " threads");
    Team team(size);
    CHECK(team.size() == size);
    CHECK(each_tile_once(team, 20000));
  }
}

TEST_CASE("teams of several threads do not meet", "[team]") {
  std::atomic<int> right{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] {
      Team team(3);
      right += each_tile_once(team, 5000);
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(right == 4);
}

TEST_CASE("a team has each thread take part once, between loops where they need not", "[team]") {
  Team team(4);
  for (int round = 0; round < 2000; ++round) {
    std::array<std::atomic<int>, 4> visits{};
    struct Seen {
      std::array<std::atomic<int>, 4>& visits;
    } seen{visits};
    team.each(
        [](const void* context, int64_t i) { ++static_cast<const Seen*>(context)->visits[static_cast<size_t>(i)]; },
        &seen);
    REQUIRE(std::all_of(visits.begin(), visits.end(), [](const auto& count) { return count == 1; }));
    REQUIRE(each_tile_once(team, 3));
  }
}

TEST_CASE("helpers that slept come back, and a tile knows that it is one", "[team]") {
  Team team(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    CHECK(each_tile_once(team, 10));
  }
  CHECK_FALSE(Team::inside());
  std::atomic<int> inside{0};
  team.claim(
      8,
      [](const void* count, int64_t) { *static_cast<std::atomic<int>*>(const_cast<void*>(count)) += Team::inside(); },
      &inside);
  CHECK(inside == 8);
}

TEST_CASE("nobody waits for a helper that is not there", "[team]") {
  Team team(3);
  CHECK(each_tile_once(team, 10));
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(each_tile_once(team, 100) ? 0 : 1);  // its helpers stayed in the parent
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("what a tile throws reaches the caller when the others are done, and the team goes on", "[team]") {
  Team team(3);
  for (const bool each : {false, true}) {
    std::atomic<int> done{0};
    const auto body = [](const void* count, int64_t tile) {
      if (tile % 2 == 0) throw std::runtime_error("tile " + std::to_string(tile));
      ++*static_cast<std::atomic<int>*>(const_cast<void*>(count));
    };
    for (int round = 0; round < 100; ++round)
      CHECK_THROWS_WITH(each ? team.each(body, &done) : team.claim(9, body, &done), "tile 0");  // the lowest
    CHECK(done == (each ? 100 : 400));
    CHECK_FALSE(Team::inside());
    CHECK(each_tile_once(team, 100));
  }
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // which need address space of their own
TEST_CASE("threads that the system does not start are an error, and those it did start end", "[team]") {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t room = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE)) + (40 << 20);  // stacks have 8 MiB each
    const rlimit limit{room, room};
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      Team team(64);
    } catch (const cinta::ValueError& error) {
      const std::string_view text = error.what();
      ::_exit(text.find("64 threads wanted; the system starts no more than") != text.npos ? 0 : 2);
    }
    ::_exit(1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
#endif

#ifndef __SANITIZE_THREAD__  // which allows a forked child no threads
TEST_CASE("a forked child has a team of its own", "[team]") {
  cinta::set_threads(2);
  const cinta::Tensor weight = cinta::full({64, 4096}, 1.0);
  const auto total = [&] { return cinta::item(cinta::sum(cinta::matmul(weight, cinta::transpose(weight, 0, 1)))); };
  const double here = total();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    { const cinta::Rehearsal waits_for_every_thread(cinta::cpu); }
    ::_exit(total() == here ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(total() == here);
}
#endif
