// The CPU lends no more memory than the process may use, by the machine's size or by that of its control groups.
#include "cinta/backends/cpu/memory_limit.h"

#include <sys/sysinfo.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "cinta/core/allocator.h"
#include "cinta/core/context.h"
#include "cinta/core/runtime.h"
#include "cinta/core/tensor.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

constexpr int64_t block = 1 << 16, most_blocks = 100;

struct PretendedLimit {
  explicit PretendedLimit(int64_t bytes) { pretend_memory_limit(bytes); }
  ~PretendedLimit() { pretend_memory_limit({}); }
  PretendedLimit(const PretendedLimit&) = delete;
};

/// Blocks from the CPU itself, given back at the end.
struct Blocks {
  Blocks() = default;
  Blocks(const Blocks&) = delete;
  ~Blocks() {
    for (void* data : taken) runtime_of(cpu).release(cpu, data, block);
  }
  bool take() {
    void* data = runtime_of(cpu).allocate(cpu, block);
    if (data) taken.push_back(data);
    return data;
  }
  std::vector<void*> taken;
};

/// The limit under which the CPU has most_blocks left, whatever other tests have left behind.
int64_t limit_with_room() {
  int64_t limit = 1 << 22;
  for (;; limit *= 2) {
    const PretendedLimit pretended(limit);
    Blocks blocks;
    while (blocks.taken.size() < most_blocks && blocks.take()) {
    }
    if (blocks.taken.size() < most_blocks) continue;
    int64_t more = 0;
    while (blocks.take()) ++more;
    return limit - more * block;
  }
}

}  // namespace

#ifndef __SANITIZE_ADDRESS__  // which writes down what it lends
TEST_CASE("the CPU lends no more than the process may use, but to a rehearsal", "[core]") {
  Context rank;
  const ContextScope inside(rank);
  const PretendedLimit pretended(limit_with_room());
  const int64_t most = most_blocks * block / 4 / 16 * 9;  // values, of which the room is for less than twice
  Tensor first = empty({most});
  CHECK_THROWS_WITH(empty({most}), Catch::Matchers::Contains("cpu has no room for"));
  {
    const Rehearsal rehearsal(cpu);
    empty({most});
  }
  context().pool(cpu)->trim();
  CHECK_THROWS_AS(empty({most}), OutOfMemory);
  first = {};
  context().pool(cpu)->trim();  // the pool would lend it again itself
  first = empty({most});
}

TEST_CASE("a small machine is asked for small segments", "[core]") {
  const PretendedLimit pretended(int64_t{1} << 28);
  CHECK(runtime_of(cpu).segment_bytes() == 1 << 24);
  pretend_memory_limit(int64_t{1} << 40);
  CHECK(runtime_of(cpu).segment_bytes() == 1 << 30);
}
#endif

TEST_CASE("threads that ask at once get all the memory there is, and no more", "[core]") {
  const PretendedLimit pretended(limit_with_room());
  for (int round = 0; round < 200; ++round) {
    std::vector<Blocks> of_thread(4);
    std::vector<std::thread> threads;
    for (Blocks& blocks : of_thread)
      threads.emplace_back([&blocks] {
        while (blocks.take()) {
        }
      });
    for (std::thread& thread : threads) thread.join();
    size_t taken = 0;
    for (const Blocks& blocks : of_thread) taken += blocks.taken.size();
    REQUIRE(taken == most_blocks);
  }
}

TEST_CASE("who asks for more than there is takes nothing from others meanwhile", "[core]") {
  const int64_t limit = limit_with_room();
  const PretendedLimit pretended(limit);
  Blocks blocks;
  REQUIRE(blocks.take());
  std::atomic<bool> done{false};
  bool granted = false;
  std::thread greedy([&] {
    while (!done) granted = granted || runtime_of(cpu).allocate(cpu, limit);
  });
  for (int round = 0; round < 400; ++round) {
    while (blocks.take()) {
    }
    if (blocks.taken.size() != most_blocks) break;
    for (; blocks.taken.size() > 1; blocks.taken.pop_back()) runtime_of(cpu).release(cpu, blocks.taken.back(), block);
  }
  done = true;
  greedy.join();
  CHECK(!granted);
  CHECK(blocks.taken.size() == 1);
}

TEST_CASE("a process may use no more than the machine has", "[core]") {
  struct sysinfo system {};
  REQUIRE(sysinfo(&system) == 0);
  CHECK(memory_limit() > 0);
  CHECK(memory_limit() <= static_cast<int64_t>((system.totalram + system.totalswap) * system.mem_unit));
}

TEST_CASE("control groups leave a process the least that one of them allows", "[core]") {
  const Scratch scratch;
  constexpr int64_t memory = 9000, swap = 500;
  const auto left = [&] { return left_by_control_groups(scratch.path(), memory, swap); };
  const auto write = [&](const std::string& file, const std::string& text) {
    const std::filesystem::path path = scratch / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  };
  CHECK(left() == memory + swap);  // no files: another system
  write("proc/self/cgroup", "0::/jobs/one");
  CHECK(left() == memory + swap);
  write("sys/fs/cgroup/jobs/one/memory.max", "max");
  CHECK(left() == memory + swap);
  write("sys/fs/cgroup/jobs/memory.max", "3000");
  CHECK(left() == 3000 + swap);
  write("sys/fs/cgroup/jobs/one/memory.max", "2000");
  CHECK(left() == 2000 + swap);
  write("sys/fs/cgroup/jobs/one/memory.swap.max", "0");
  CHECK(left() == 2000);
  write("sys/fs/cgroup/memory.max", "1000");  // a container, which sees its own group as the top
  CHECK(left() == 1000);
  // Version 1, where the memory's groups have a tree of their own; the path is one of outside the container.
  write("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:hugetlb,memory:/docker/b\n0::/elsewhere");
  std::filesystem::remove(scratch / "sys/fs/cgroup/memory.max");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "900");
  CHECK(left() == 900 + swap);
  write("sys/fs/cgroup/memory/docker/b/memory.limit_in_bytes", "800");
  CHECK(left() == 800 + swap);
  write("sys/fs/cgroup/memory/docker/b/memory.memsw.limit_in_bytes", "850");
  CHECK(left() == 850);
  write("proc/self/cgroup", "no group at all");
  CHECK(left() == memory + swap);
}
