// The search for the largest batch that fits: its tries, and a BERT's training step where memory ends.
#include "cinta/train/find_batch_size.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "bert_helpers.h"
#include "cinta/core/allocator.h"
#include "cinta/core/context.h"
#include "cinta/ops/loss.h"
#include "cinta/optim/adamw.h"
#include "data_helpers.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

/// While alive, the CPU lends no more than `capacity` bytes beyond what it has lent before.
class LittleMemory final : public Runtime {
 public:
  explicit LittleMemory(int64_t capacity) : left_(capacity), whole_(runtime_of(cpu)) {
    RegisterRuntime(cpu, "cpu", *this);
  }
  ~LittleMemory() override { RegisterRuntime(cpu, "cpu", whole_); }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;
  void* allocate(Device device, int64_t bytes) override {
    if (bytes > left_) return nullptr;
    left_ -= bytes;
    return whole_.allocate(device, bytes);
  }
  void release(Device device, void* data, int64_t bytes) noexcept override {
    left_ += bytes;
    whole_.release(device, data, bytes);
  }
  void copy(Stream stream, void* destination, const void* source, int64_t bytes) override {
    whole_.copy(stream, destination, source, bytes);
  }
  bool host_accessible() const override { return whole_.host_accessible(); }
  void rehearse(bool on) override { whole_.rehearse(on); }

 private:
  int64_t left_;
  Runtime& whole_;
};

/// A small BERT's training steps, of any batch size.
class Training {
 public:
  double step(int64_t batch) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < batch * length; ++i) ids.push_back(5 + i * 7 % 51);
    optimizer_.zero_gradients();
    bert_.random().set_step(steps_++);
    const Tensor loss =
        cross_entropy(bert_({.ids = from_values(ids, {batch, length})}), from_values(ids, {batch * length}));
    autograd::backward(loss);
    optimizer_.step({.max_norm = 1.0});
    return item(loss);
  }

 private:
  static constexpr int64_t length = 12;
  models::BertForMaskedLM bert_{small_config(0.1), 3};
  optim::AdamW optimizer_{bert_.parameters(), {.rate = 5e-3}};
  int64_t steps_ = 0;

 public:
  const double first_loss = step(1);  ///< makes gradients and the optimizer's state, which stay
};

/// Where the CPU has `capacity` bytes and nothing of what went before is kept.
void with_room_for(int64_t capacity, const std::function<void(Training&)>& work) {
  Context own;
  std::thread([&] {            // a new thread has nothing to work in yet
    const ThreadScope one(1);  // further threads would work in memory of another context
    const ContextScope scope(own);
    const LittleMemory little(capacity);
    Training training;
    work(training);
  })
      .join();
}

}  // namespace

TEST_CASE("the largest batch that fits is found with few tries", "[find_batch_size]") {
  for (int64_t most : {1, 2, 3, 7, 64, 100, 1000})
    for (int64_t limit = 1; limit <= most + 1; limit += 1 + limit / 9) {
      int64_t tries = 0;
      const int64_t found = train::find_batch_size(
          [&](int64_t size) {
            CHECK((size >= 1 && size <= most));
            return ++tries, size <= limit;
          },
          most);
      CHECK(found == std::min(limit, most));
      CHECK(tries <= 23);
    }
}

TEST_CASE("what the search itself took is taken off", "[find_batch_size]") {
  int64_t room = 20, last = 0;  // a try keeps a tenth of its size
  const int64_t found = train::find_batch_size(
      [&](int64_t size) {
        const bool fits = size <= room;
        room = std::min(room, 20 - size / 10);
        return last = size, fits;
      },
      1 << 10);
  CHECK(found == last);
  CHECK(found == 17);
}

TEST_CASE("a step out of memory does not fit, another error is handed on", "[find_batch_size]") {
  const auto step = [](int64_t size) {
    if (size > 5) throw OutOfMemory("full");
    return true;
  };
  CHECK(train::find_batch_size(step, 1 << 20) == 5);
  CHECK_THROWS_AS(train::find_batch_size([](int64_t) { return false; }, 8), OutOfMemory);
  CHECK_THROWS_AS(train::find_batch_size([](int64_t) -> bool { throw ValueError("no"); }, 8), ValueError);
  CHECK_THROWS_AS(train::find_batch_size(step, 0), ValueError);
}

// Where the blocks of earlier tries lie may cost the search a sample, hence the tenth.
TEST_CASE("the largest batch that a BERT's step finds room for trains, a tenth more does not", "[find_batch_size]") {
  std::vector<int64_t> found;
  for (int64_t capacity = 1 << 20; capacity <= 3 << 20; capacity += 1 << 18) {
    INFO("room for " << capacity << " bytes");
    with_room_for(capacity, [&](Training& training) {
      int64_t tries = 0, failed = 0;
      found.push_back(train::find_batch_size(
          [&](int64_t size) {
            ++tries;
            ++failed;
            for (int i = 0; i < 2; ++i) training.step(size);
            --failed;
            return true;
          },
          4096));
      CHECK(failed >= 1);
      CHECK(tries - failed >= 3);
      CHECK(memory_statistics(cpu).peak_total <= capacity);
      double loss = 0;
      CHECK_NOTHROW([&] {
        for (int i = 0; i < 20; ++i) loss = training.step(found.back());
      }());
      CHECK(loss < training.first_loss - 0.5);
    });
    with_room_for(capacity, [&](Training& training) {
      const std::string message = error_of<OutOfMemory>([&] {
        for (int i = 0; i < 2; ++i) training.step(found.back() + 1 + found.back() / 10);
      });
      CHECK_THAT(message, Catch::Matchers::Contains(" MiB more; reserved: ") &&
                              Catch::Matchers::Contains("activations by linear") &&
                              Catch::Matchers::Contains("would help"));
    });
  }
  CHECK(found.front() > 4);
  CHECK(found.back() > 3 * found.front());  // the weights and the optimizer's state take room once
}
