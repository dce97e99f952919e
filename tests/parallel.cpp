// The CPU backend's parallel loop and workspaces; and that the number of threads changes no bit of any result.
#include "cinta/backends/cpu/parallel.h"
#include "cinta/core/allocator.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "cinta/backends/captured_step.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/backends/kernels/optimizer.h"
#include "cinta/backends/kernels/random.h"
#include "cinta/backends/kernels/reduce.h"
#include "cinta/backends/threads.h"
#include "cinta/core/context.h"
#include "cinta/core/random.h"
#include "cinta/core/tensor.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/shape.h"
#include "thread_scope.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

using Tile = std::pair<int64_t, int64_t>;

std::multiset<Tile> tiles(int64_t count, int64_t grain) {
  std::mutex mutex;
  std::multiset<Tile> out;
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    std::lock_guard lock(mutex);
    out.insert({begin, end});
  });
  return out;
}

Tensor noise(const Shape& shape, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random_normal(seed, 0, 0, i));
  return from_values(values, shape);
}

/// Runs `row` on new tensors of the given shapes with 1, 2, 3 and 7 threads: what it leaves in them must be the same.
template <class Row>
void check_same_bits(const char* what, const std::vector<Shape>& shapes, Row row) {
  std::vector<std::vector<float>> alone;
  for (int count : {1, 2, 3, 7}) {
    const ThreadScope scope(count);
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < shapes.size(); ++i) tensors.push_back(noise(shapes[i], i));
    row(tensors);
    std::vector<std::vector<float>> values;
    for (const Tensor& tensor : tensors) values.push_back(to_vector<float>(tensor));
    if (count == 1) alone = values;
    INFO(what << " with " << count << " threads");
    CHECK(values == alone);
  }
}

}  // namespace

TEST_CASE("tiles cover the range once and depend on the sizes alone", "[parallel]") {
  CHECK(tiles(0, 10).empty());
  CHECK(tiles(1, 10) == std::multiset<Tile>{{0, 1}});
  CHECK(tiles(10, 10) == std::multiset<Tile>{{0, 10}});
  CHECK(tiles(11, 10) == std::multiset<Tile>{{0, 10}, {10, 11}});
  for (int count : {1, 2, 5}) {
    const ThreadScope scope(count);
    const std::multiset<Tile> found = tiles(1234, 100);
    CHECK(found.size() == 13);
    int64_t at = 0;
    for (const auto& [begin, end] : found) {
      CHECK(begin == at);
      CHECK(end == std::min<int64_t>(begin + 100, 1234));
      at = end;
    }
    CHECK(at == 1234);
  }
}

TEST_CASE("a parallel loop inside another runs on its own thread", "[parallel]") {
  std::atomic<int> strangers{0}, visits{0};
  parallel_for(8, 1, [&](int64_t, int64_t) {
    const auto self = std::this_thread::get_id();
    parallel_for(100, 1, [&](int64_t, int64_t) {
      strangers += std::this_thread::get_id() != self;
      ++visits;
    });
  });
  CHECK(strangers == 0);
  CHECK(visits == 800);
}

TEST_CASE("the number of threads is at least one", "[parallel]") {
  CHECK(threads() >= 1);
  CHECK_THROWS_AS(set_threads(0), ValueError);
  CHECK_THROWS_AS(set_threads(-3), ValueError);
}

TEST_CASE("workspaces grow, stay apart, and count", "[parallel]") {
  Context own;
  std::thread([&] {  // a new thread has no workspace yet, and gives it back when it ends
    const ContextScope scope(own);
    const auto live = [&] { return own.pool(cpu)->statistics().live[static_cast<int>(Category::workspace)]; };
    CHECK(live() == 0);
    void* call = scratch(1000, Workspace::call);
    void* tile = scratch(1000, Workspace::tile);
    CHECK(call != tile);
    CHECK(reinterpret_cast<uintptr_t>(call) % 64 == 0);
    CHECK(live() == 2048);
    CHECK(scratch(10, Workspace::call) == call);
    scratch(5000, Workspace::call);
    CHECK(live() == 1024 + 5120);
  })
      .join();
  CHECK(own.pool(cpu)->statistics().live_total == 0);
}

TEST_CASE("a thread's workspace outlives the captured step that first asked for it", "[parallel]") {
  Context own;
  std::thread([&] {  // a new thread has no workspace yet
    const ContextScope scope(own);
    const auto live = [&] { return own.pool(cpu)->statistics().live[static_cast<int>(Category::workspace)]; };
    const Tensor x = full({8}, 1);
    {
      const CapturedStep step(cpu, [&] {
        scratch(1000, Workspace::call);
        kernels::fill(cpu, x, 2);
      });
      CHECK(live() == 1024);  // the pool of the step itself goes with it
    }
    CHECK(live() == 1024);
  })
      .join();
  CHECK(own.pool(cpu)->statistics().live_total == 0);
}

TEST_CASE("a rehearsal counts the workspace of every thread that tiles may fall to", "[parallel]") {
  const auto live = [] { return memory_statistics(cpu).live[static_cast<int>(Category::workspace)]; };
  std::thread([&] {  // with a team of its own
    set_threads(4);
    const int64_t before = live();
    std::atomic<int> at_once{0}, most{0};
    {
      const Rehearsal rehearsal(cpu);
      parallel_for(2, 1, [&](int64_t tile, int64_t) {
        scratch(tile == 0 ? 1000 : 100, Workspace::tile);  // the last one has less to do
        if (tile > 0) return;
        const int now = ++at_once;
        if (now > most) most = now;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        --at_once;
      });
      CHECK(live() - before == 4 * 1024);
      CHECK(most == 1);  // a tile has its results for itself
    }
    CHECK(live() == before);
  })
      .join();
}

TEST_CASE("a rehearsal ends, however many threads are wanted by then", "[parallel]") {
  std::thread([] {
    {
      const Rehearsal rehearsal(cpu);
      set_threads(1 << 20);  // the system starts no team as large, and none is needed to end
    }
    set_threads(2);
    std::atomic<int> tiles{0};
    parallel_for(8, 1, [&](int64_t, int64_t) { ++tiles; });
    CHECK(tiles == 8);
  }).join();
}

TEST_CASE("results do not depend on the number of threads", "[parallel]") {
  using V = std::vector<Tensor>;
  const Shape flat{300001}, matrix{700, 613}, column{700, 1}, row{1, 613}, one{1, 1};
  check_same_bits("gelu", {flat, flat}, [](V& t) { kernels::gelu.forward(cpu, t[0], t[1], {}); });
  check_same_bits("add", {matrix, matrix, matrix}, [](V& t) { kernels::add(cpu, t[0], t[1], t[2]); });
  check_same_bits("sum of rows", {column, matrix}, [](V& t) { kernels::sum(cpu, t[0], t[1], 0.5f); });
  check_same_bits("sum of columns", {row, matrix}, [](V& t) { kernels::sum(cpu, t[0], t[1], 0.5f); });
  check_same_bits("sum", {one, matrix}, [](V& t) { kernels::sum(cpu, t[0], t[1], 0); });
  check_same_bits("sum of squares", {flat}, [](V& t) {
    const Tensor sum = empty({1}, Dtype::f64);
    kernels::sum_of_squares(cpu, sum, t[0]);
    const double value = item(sum);
    std::memcpy(t[0].data<float>().data(), &value, sizeof value);
  });
  check_same_bits("activation and bias, backward", {matrix, {613}, matrix, matrix},
                  [](V& t) { kernels::activation_backward(cpu, t[0], t[1], t[2], t[3], 1); });
  check_same_bits("dropout", {matrix, matrix}, [](V& t) {
    const Tensor state = from_values(std::vector<int64_t>{7, 3, 11}, {3});
    kernels::dropout(cpu, t[0], {}, t[1], {state, 5, 0.3f});
  });
  check_same_bits("adamw", {flat, flat, flat, flat}, [](V& t) {
    for (float& v : t[2].data<float>()) v = v * v;
    const Tensor ends = from_values(std::vector<int64_t>{1000, 100000, 300001}, {3});
    const Tensor ones = from_values(std::vector<float>{1, 0.5f, 1}, {3});
    const Tensor scalars = from_values(std::vector<float>{1e-3f, 0.7f, 0.1f, 0.001f}, {4});
    kernels::adamw(cpu, t[0], {}, t[1], t[2], t[3], {ends, ones, ones}, scalars, {});
  });
}

TEST_CASE("threads in the process's context are told of their own data alone", "[parallel]") {
  std::atomic<bool> stop{false};
  std::atomic<int> innocent{0}, told{0};
  const auto rows = [](int64_t label) {
    return item(cross_entropy(full({8, 10}, 0.5), full({8}, static_cast<double>(label), Dtype::i64)));
  };
  std::jthread other([&] {
    const ThreadScope one(1);
    while (!stop) try {
        rows(3);
      } catch (const ValueError&) {
        ++innocent;
      }
  });
  const ThreadScope one(1);
  for (int i = 0; i < 2000; ++i) try {
      rows(77);
    } catch (const ValueError&) {
      ++told;
    }
  stop = true;
  other.join();
  CHECK(told == 2000);
  CHECK(innocent == 0);
}
