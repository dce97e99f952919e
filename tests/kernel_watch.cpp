// Rows seen from outside: what a watcher is told, and that nothing is left of it when it goes.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/backends/threads.h"
#include "cinta/core/context.h"
#include "cinta/core/tensor.h"
#include "cinta/ops/shape.h"

using namespace cinta;
using Catch::Matchers::Contains;

namespace {

/// Writes down what it is told: "before fill 1 [2,3]".
class Diary : public RowWatcher {
 public:
  explicit Diary(Device device) : device_(device) { watch_rows(device_, this); }
  ~Diary() override { watch_rows(device_, nullptr); }
  void before(const KernelRow& row, std::span<const View> views) override { note("before ", row, views); }
  void after(const KernelRow& row, std::span<const View> views) override { note("after ", row, views); }
  std::vector<std::string> lines;

 private:
  void note(const char* when, const KernelRow& row, std::span<const View> views) {
    lines.push_back(join(when, row.name(), " ", views.size(), views.empty() ? Shape{} : views[0].shape));
  }
  Device device_;
};

}  // namespace

TEST_CASE("a watcher sees each row before and after it runs, with its views", "[kernel_watch]") {
  const Tensor x = full({2, 3}, 1.0), y = empty({2, 3}), bias;
  std::vector<std::string> lines;
  {
    Diary diary(cpu);
    kernels::add(cpu, y, x, x);
    kernels::activation(cpu, y, View{}, y, kernels::Activation::relu);
    lines = diary.lines;
  }
  CHECK(lines == std::vector<std::string>{"before add 3[2,3]", "after add 3[2,3]", "before activation 3[2,3]",
                                          "after activation 3[2,3]"});
  CHECK(to_vector<float>(y) == std::vector<float>(6, 2));
}

TEST_CASE("watching one device leaves the others alone, and ends without a trace", "[kernel_watch]") {
  const Tensor x = full({4}, 1.0), other = full({4}, 1.0, Dtype::f32, reference);
  Diary diary(cpu);
  kernels::fill(reference, other, 2);
  CHECK(diary.lines.empty());
  watch_rows(cpu, nullptr);
  kernels::fill(cpu, x, 2);
  CHECK(diary.lines.empty());
  CHECK(to_vector<float>(x) == std::vector<float>(4, 2));
  for (const KernelRow* row : kernel_table()) CHECK(row->has(cpu));
}

TEST_CASE("a row that runs inside another is seen inside it", "[kernel_watch]") {
  const Tensor y = empty({2, 2}), a = empty({2, 0}), b = empty({0, 2});
  Diary diary(cpu);
  kernels::matmul(cpu, y, a, b, 1, 0);
  CHECK(diary.lines == std::vector<std::string>{"before matmul 3[2,2]", "before fill 1[2,2]", "after fill 1[2,2]",
                                                "after matmul 3[2,2]"});
}

TEST_CASE("long products, on whatever thread, run no other rows", "[kernel_watch]") {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (const int64_t width : {64, 128}) {
      const Tensor a = full({4, 2048, width}, 1.0, dtype), b = full({4, 2048, width}, 0.5, dtype),
                   y = empty({4, width, width});
      Diary diary(cpu);
      kernels::matmul(cpu, y, transpose(a, 1, 2), b, 1, 0);
      CHECK(diary.lines.size() == 2);
      CHECK(to_vector<float>(y) == std::vector<float>(static_cast<size_t>(4 * width * width), 1024));
    }
  const Tensor a = full({2, 16, 8192}, 1.0), b = full({2, 8192, 16}, 0.5), y = empty({2, 16, 16});
  Diary diary(cpu);  // a sum so long is cut into parts that a row adds up, but for a batch's
  kernels::matmul(cpu, y, a, b, 1, 0);
  CHECK(diary.lines.size() == 2);
  CHECK(to_vector<float>(y) == std::vector<float>(2 * 16 * 16, 4096));
}

TEST_CASE("a watched row that a backend does not have is missing still", "[kernel_watch]") {
  static constinit Kernel<void(View)> row{"half_a_row"};
  const Device lone{7};
  Diary diary(lone);
  CHECK_THROWS_WITH(row(lone, View{}), Contains("half_a_row"));
  CHECK(diary.lines.empty());
}

TEST_CASE("watching begins and ends while other threads run rows", "[kernel_watch]") {
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::jthread other([&] {
    set_threads(1);
    const Tensor x = full({16}, 1.0), y = full({16}, 0);
    for (int i = 1; !stop; ++i) {
      kernels::fill(cpu, y, i);
      kernels::add(cpu, y, y, x);
      wrong += y.data<float>()[15] != static_cast<float>(i) + 1;
    }
  });
  struct Count : RowWatcher {
    explicit Count(std::atomic<int>& wrong) : wrong(wrong) { watch_rows(cpu, this); }
    ~Count() override {
      watch_rows(cpu, nullptr);
      wrong += begun != ended;  // nobody is at one
    }
    void before(const KernelRow&, std::span<const View>) override { ++begun; }
    void after(const KernelRow&, std::span<const View>) override { ++ended; }
    std::atomic<int>& wrong;
    std::atomic<int> begun{0}, ended{0};
  };
  const Tensor x = full({4}, 1.0);
  for (int i = 0; i < 2000; ++i) {
    const Count count(wrong);
    kernels::fill(cpu, x, i);
    wrong += count.begun < 1;
  }
  stop = true;
  other.join();
  CHECK(wrong == 0);
  CHECK(row_watcher(cpu) == nullptr);
}

TEST_CASE("a call may send away the watcher whom another thread sends away", "[kernel_watch]") {
  struct Leaver : RowWatcher {
    void before(const KernelRow&, std::span<const View>) override {}
    void after(const KernelRow&, std::span<const View>) override {
      seen = true;
      while (row_watcher(cpu)) std::this_thread::yield();  // until the other thread has, and waits for this call
      watch_rows(cpu, nullptr);
    }
    std::atomic<bool> seen{false};
  } leaver;
  const Tensor x = full({4}, 1.0);
  watch_rows(cpu, &leaver);
  std::jthread other([&] { kernels::fill(cpu, x, 2); });
  while (!leaver.seen) std::this_thread::yield();
  watch_rows(cpu, nullptr);
  other.join();
  CHECK(row_watcher(cpu) == nullptr);
}

TEST_CASE("a device has one watcher at a time", "[kernel_watch]") {
  const Diary first(cpu);
  CHECK_THROWS_WITH(Diary(cpu), Contains("[watch_rows] one watcher at a time of cpu"));
  CHECK(row_watcher(cpu) == &first);
}
