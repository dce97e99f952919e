// Pools, storages, contexts: what is counted, reused and given back.
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <thread>

#include "cinta/core/allocator.h"
#include "cinta/core/context.h"
#include "cinta/core/random.h"
#include "cinta/core/tensor.h"
#include "data_helpers.h"

using namespace cinta;

namespace {

/// A machine with little memory that remembers every block it lent out.
class SmallMachine final : public Runtime {
 public:
  void* allocate(Device, int64_t bytes) override {
    if (lent + bytes > capacity) return nullptr;
    void* data = std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64));
    blocks[data] = bytes;
    lent += bytes;
    return data;
  }
  void release(Device, void* data, int64_t bytes) noexcept override {
    wrong_releases += blocks.count(data) == 0 || blocks[data] != bytes;
    lent -= bytes;
    blocks.erase(data);
    std::free(data);
  }
  void copy(Stream, void* destination, const void* source, int64_t bytes) override {
    std::memcpy(destination, source, static_cast<size_t>(bytes));
  }
  bool host_accessible() const override { return true; }
  std::map<void*, int64_t> blocks;
  int64_t lent = 0, capacity = INT64_MAX / 2;
  int wrong_releases = 0;
};

SmallMachine& machine() {
  static SmallMachine& one = *new SmallMachine;
  return one;
}
Device small() {
  static const Device device = claim_backend("small", machine());
  return device;
}

void check_all_given_back(Pool& pool) {
  pool.trim();
  CHECK(machine().lent == 0);
  CHECK(machine().wrong_releases == 0);
}

}  // namespace

TEST_CASE("blocks of every size are lent, cached and given back with the same size", "[core]") {
  Pool pool(small());
  std::vector<std::pair<void*, int64_t>> blocks;
  const auto take = [&](int64_t bytes) {
    void* data = pool.allocate(bytes, Category::activations);
    CHECK(reinterpret_cast<uintptr_t>(data) % 64 == 0);
    CHECK(machine().blocks.at(data) >= bytes);
    CHECK(machine().blocks.at(data) <= std::max<int64_t>(512, bytes + bytes / 8));
    blocks.push_back({data, bytes});
  };
  for (int64_t bytes = 0; bytes <= 5000; bytes += 7) take(bytes);
  for (int log = 9; log <= 19; ++log)
    for (int eighth = 8; eighth < 16; ++eighth)
      for (int64_t beside : {-1, 0, 1}) take((int64_t{1} << (log - 3)) * eighth + beside);
  const auto statistics = pool.statistics();
  CHECK(statistics.live_total == machine().lent);
  for (auto [data, bytes] : blocks) pool.release(data, bytes, Category::activations);
  CHECK(pool.statistics().live_total == 0);
  CHECK(pool.statistics().peak_total == statistics.live_total);
  CHECK(machine().lent == statistics.live_total);  // cached, not given back
  check_all_given_back(pool);
}

TEST_CASE("large blocks are cut from segments and joined again", "[core]") {
  Pool pool(small());
  constexpr int64_t mib = 1 << 20;
  const auto take = [&](int64_t bytes) {
    char* data = static_cast<char*>(pool.allocate(bytes, Category::activations));
    CHECK(reinterpret_cast<uintptr_t>(data) % 64 == 0);
    return data;
  };
  const auto give = [&](char* data, int64_t bytes) { pool.release(data, bytes, Category::activations); };
  char *a = take(10 * mib), *b = take(20 * mib - 5), *c = take(30 * mib), *d = take(68 * mib);
  CHECK(machine().blocks.size() == 1);  // one segment, and nothing of it lost
  CHECK(machine().lent == 128 * mib);
  CHECK(pool.statistics().live_total == 128 * mib);
  give(a, 10 * mib);
  give(c, 30 * mib);
  CHECK(take(10 * mib) == a);  // the smaller of two places
  give(a, 10 * mib);
  give(b, 20 * mib - 5);
  CHECK(take(60 * mib) == a);  // the three that were neighbours
  give(a, 60 * mib);
  give(d, 68 * mib);
  char* whole = take(128 * mib);
  CHECK(whole == a);
  char* more = take(200 * mib);  // a segment of its own
  CHECK(machine().blocks.size() == 2);
  give(whole, 128 * mib);
  give(more, 200 * mib);
  CHECK(pool.statistics().system_requests == 2);
  CHECK(machine().lent == 328 * mib);
  char* kept = take(mib);
  pool.trim();
  CHECK(machine().blocks.size() == 1);  // a segment that is used in part stays
  give(kept, mib);
  check_all_given_back(pool);
}

TEST_CASE("what lies free beside weights serves activations before memory runs out", "[core]") {
  Pool pool(small());
  constexpr int64_t mib = 1 << 20;
  machine().capacity = machine().lent + 256 * mib;
  void *weights = pool.allocate(2 * mib, Category::weights),
       *activations = pool.allocate(100 * mib, Category::activations),
       *more = pool.allocate(60 * mib, Category::activations);
  CHECK(machine().blocks.size() == 2);
  try {
    pool.allocate(80 * mib, Category::activations);
    FAIL("there is no room");
  } catch (const OutOfMemory& error) {
    CHECK_THAT(error.what(),
               Catch::Contains("80.0 MiB more; reserved: 256.0 MiB, of it free and given back in vain 0.0 "
                               "MiB, free in pieces 94.0 MiB; alive: weights 2.0 MiB"));
  }
  pool.release(weights, 2 * mib, Category::weights);
  pool.release(activations, 100 * mib, Category::activations);
  pool.release(more, 60 * mib, Category::activations);
  check_all_given_back(pool);
  machine().capacity = INT64_MAX / 2;
}

TEST_CASE("blocks that are lent never overlap, whatever is taken and given", "[core]") {
  Pool pool(small());
  std::map<char*, int64_t> lent;
  const auto release = [&](std::map<char*, int64_t>::iterator one) {
    pool.release(one->first, one->second, Category::activations);
    lent.erase(one);
  };
  for (uint32_t i = 0; i < 4000; ++i) {
    const uint32_t word = random_word(7, 1, 0, i);
    if (lent.size() > 40 || (word % 3 == 0 && !lent.empty())) {
      release(std::next(lent.begin(), static_cast<long>(word / 3 % lent.size())));
      continue;
    }
    const int64_t bytes = int64_t{word} % (i % 7 == 0 ? 90 << 20 : 9 << 20) + 1;
    char* data = static_cast<char*>(pool.allocate(bytes, Category::activations));
    const auto after = lent.lower_bound(data);
    if (after != lent.end()) REQUIRE(data + bytes <= after->first);
    if (after != lent.begin()) REQUIRE(std::prev(after)->first + std::prev(after)->second <= data);
    lent[data] = bytes;
  }
  while (!lent.empty()) release(lent.begin());
  check_all_given_back(pool);
}

TEST_CASE("a released block is used again, and a warm pool asks the machine for nothing", "[core]") {
  Pool pool(small());
  void* first = pool.allocate(1000, Category::workspace);
  pool.release(first, 1000, Category::workspace);
  CHECK(pool.allocate(1020, Category::gradients) == first);  // of the same class of sizes
  void* other = pool.allocate(1000, Category::gradients);
  CHECK(other != first);
  CHECK(pool.statistics().system_requests == 2);
  CHECK(pool.statistics().requests == 3);
  pool.release(first, 1020, Category::gradients);
  pool.release(other, 1000, Category::gradients);
}

TEST_CASE("live and peak bytes are counted by category", "[core]") {
  Pool pool(small());
  const auto live = [&](Category c) { return pool.statistics().live[static_cast<size_t>(c)]; };
  const auto peak = [&](Category c) { return pool.statistics().peak[static_cast<size_t>(c)]; };
  void* weights = pool.allocate(1024, Category::weights);
  void* activations = pool.allocate(2048, Category::activations);
  CHECK(live(Category::weights) == 1024);
  CHECK(live(Category::activations) == 2048);
  pool.release(activations, 2048, Category::activations);
  CHECK(live(Category::activations) == 0);
  CHECK(peak(Category::activations) == 2048);
  CHECK(pool.statistics().peak_total == 3072);
  pool.reset_peak();
  CHECK(peak(Category::activations) == 0);
  CHECK(peak(Category::weights) == 1024);
  CHECK(pool.statistics().peak_total == 1024);
  pool.release(weights, 1024, Category::weights);
}

TEST_CASE("a full machine gives its cache back first, then says what is alive", "[core]") {
  Pool pool(small());
  machine().capacity = 8 << 20;
  void* cached = pool.allocate(6 << 20, Category::activations);
  pool.release(cached, 6 << 20, Category::activations);
  void* weights = pool.allocate(7 << 20, Category::weights);  // only fits once the cached block is gone
  CHECK(machine().lent == 7 << 20);
  try {
    pool.allocate(4 << 20, Category::activations);
    FAIL("there is no room");
  } catch (const OutOfMemory& error) {
    const std::string message = error.what();
    CHECK_THAT(message,
               Catch::Matchers::Contains(
                   "small has no room for 4.0 MiB more; reserved: 7.0 MiB, of it free and given back in vain 0.0"));
    CHECK_THAT(message, Catch::Matchers::Contains("weights 7.0 MiB, gradients 0.0 MiB"));
  }
  CHECK(pool.statistics().live_total == 7 << 20);  // the failed request counts nothing
  pool.release(weights, 7 << 20, Category::weights);
  machine().capacity = INT64_MAX / 2;
}

TEST_CASE("what is told when memory runs out names the ten largest blocks, and no block that is gone", "[core]") {
  Context rank;
  const ContextScope inside(rank);
  machine().capacity = machine().lent + (40 << 20);
  std::vector<Tensor> all;
  for (int64_t i = 0; i < 12; ++i) {
    const CategoryScope scope(i % 2 ? Category::weights : Category::activations);
    all.push_back(empty({(i + 1) << 16}, Dtype::f32, small()));  // 0.25 MiB more each time, 19.5 in all
    if (i % 2 == 0) all.back().storage()->mark_made(i == 10 ? "gelu" : "linear");
  }
  all.push_back(empty({1 << 16}, Dtype::f32, small()));
  all.back().storage()->mark_made("linear");
  all[11].storage()->mark_written("adamw");
  all[9] = Tensor();  // 2.5 MiB, which the pool keeps
  all[4].storage()->rebind(all[11].storage(), 0);
  std::string message;
  try {
    empty({32 << 18}, Dtype::f32, small());
  } catch (const OutOfMemory& error) {
    message = error.what();
  }
  CHECK_THAT(message,
             Catch::Matchers::Contains("no room for 32.0 MiB more; reserved: 19.7 MiB, of it free and given "
                                       "back in vain 3.7 MiB, free in pieces 0.0 MiB; alive: weights 8.0 MiB"));
  CHECK_THAT(message, Catch::Matchers::Contains(
                          "; the largest: 3.0 MiB weights, 2.7 MiB activations by gelu, 2.2 MiB activations by linear, "
                          "2.0 MiB weights, 1.7 MiB activations by linear, 1.5 MiB weights, 1.0 MiB weights, 0.7 MiB "
                          "activations by linear, 0.5 MiB weights, 2 x 0.2 MiB activations by linear. A smaller"));
  machine().capacity = INT64_MAX / 2;
}

TEST_CASE("bytes beyond what can be counted are more than the meta device has", "[core]") {
  Context rank;
  const ContextScope inside(rank);
  const Tensor first = empty({int64_t{1} << 60}, Dtype::f32, meta);
  CHECK_THROWS_AS(empty({int64_t{1} << 60}, Dtype::f32, meta), OutOfMemory);
  CHECK(memory_statistics(meta).live_total == int64_t{1} << 62);
  for (const Device device : {meta, cpu})
    for (const int64_t bytes : {INT64_MAX, INT64_MAX - 70'000}) {
      const std::string error = testing::error_of<OutOfMemory>([&] { empty({bytes}, Dtype::u8, device); });
      CHECK_THAT(error, Catch::Contains("8796093022207.9 MiB"));
    }
  CHECK(memory_statistics(meta).live_total == int64_t{1} << 62);
}

TEST_CASE("storages count in the category of their scope and give back where they took", "[core]") {
  Context rank;
  const ContextScope inside(rank);
  {
    const CategoryScope scope(Category::weights);
    const Tensor weight = empty({256});
    CHECK(memory_statistics(cpu).live[static_cast<size_t>(Category::weights)] == 1024);
    const CategoryScope inner(Category::optimizer);
    CHECK(current_category() == Category::optimizer);
  }
  CHECK(current_category() == Category::activations);
  CHECK(memory_statistics(cpu).live_total == 0);
  Tensor outlives = empty({256});
  {
    Context other;
    const ContextScope in_other(other);
    CHECK(memory_statistics(cpu).live_total == 0);
    outlives = Tensor();  // given back to the pool it came from
    CHECK(memory_statistics(cpu).requests == 0);
  }
  CHECK(memory_statistics(cpu).live_total == 0);
  CHECK(memory_statistics(host).requests == 0);  // a memory of its own
}

TEST_CASE("a thread has its own context scope", "[core]") {
  Context rank;
  const ContextScope scope(rank);
  Context* seen = &rank;
  std::thread([&] { seen = &context(); }).join();
  CHECK(&context() == &rank);
  CHECK(seen != &rank);
}

TEST_CASE("a storage slice shares memory, has its own version and keeps its parent", "[core]") {
  auto whole = std::make_shared<Storage>(1024, cpu);
  auto slice = std::make_shared<Storage>(whole, 256, 128);
  char* const start = static_cast<char*>(whole->data());
  CHECK(slice->data() == start + 256);
  CHECK(slice->bytes() == 128);
  CHECK(slice->device() == cpu);
  slice->mark_written("add_");
  CHECK(slice->version() == 1);
  CHECK(slice->last_writer() == std::string("add_"));
  CHECK(whole->version() == 0);
  const std::weak_ptr<Storage> watch = whole;
  whole.reset();
  CHECK_FALSE(watch.expired());
  slice.reset();
  CHECK(watch.expired());
}

TEST_CASE("a storage that moves takes its tensors along and gives its memory back", "[core]") {
  Context rank;
  const ContextScope inside(rank);
  const Tensor weight = from_values<float>(std::vector<float>(256, 1.0f), {256});
  const Tensor row = weight.with_layout({16}, {1}, 16);
  const int64_t before = memory_statistics(cpu).live_total;
  auto flat = std::make_shared<Storage>(4096, cpu);
  std::memset(flat->data(), 0, 4096);
  weight.storage()->rebind(flat, 512);
  CHECK(memory_statistics(cpu).live_total == before - 1024 + 4096);
  CHECK(weight.view().data == static_cast<char*>(flat->data()) + 512);
  CHECK(row.view().data == static_cast<char*>(flat->data()) + 512 + 64);
  CHECK(to_vector<float>(row) == std::vector<float>(16, 0.0f));
  weight.storage()->rebind(std::make_shared<Storage>(1024, cpu), 0);  // and on to another parent
  CHECK(weight.view().data != static_cast<char*>(flat->data()) + 512);
}

TEST_CASE("a reported index is thrown once and cleared", "[core]") {
  Context rank;
  const ContextScope inside(rank);
  CHECK_NOTHROW(context().check_status(cpu));
  *context().status(cpu) = {Status::index_out_of_range, 3, 77, 10};
  CHECK_THROWS_WITH(context().check_status(cpu),
                    Catch::Matchers::Contains("index 77 at position 3 is outside [0, 10) on cpu"));
  CHECK_NOTHROW(context().check_status(cpu));
}

TEST_CASE("columns for backends from outside run out with a message", "[core]") {
  CHECK(claim_backend("small", machine()) == small());
  CHECK_THROWS_AS(runtime_of(Device{max_backends}), DeviceError);
  CHECK(name_of(small()) == "small");
}

TEST_CASE("a backend is refused a name that would name another device, or none", "[core]") {
  for (const char* name : {"", "cpu:1", "host", "npu:"}) {
    INFO("'" << name << "'");
    CHECK_THROWS_WITH(claim_backend(name, machine()), Catch::Matchers::Contains("a name without ':'"));
  }
}
