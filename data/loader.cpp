// The order's cache and the thread that works ahead.
#include "cinta/data/loader.h"

#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "cinta/autograd/mode.h"
#include "cinta/data/permutation.h"

namespace cinta::data {

struct Order::Cache {
  std::mutex mutex;
  std::array<std::shared_ptr<const std::vector<int64_t>>, 2> orders;  // a batch may lie across two epochs
  std::array<int64_t, 2> epochs{-1, -1};
};

bool Batch::operator==(const Batch&) const = default;

Order::Order(int64_t count, int64_t batch_size, uint64_t seed, Where where)
    : count_(count), batch_size_(batch_size), seed_(seed), cache_(std::make_shared<Cache>()) {
  require(count > 0, "loader", where, "there is no sample");
  require(batch_size > 0, "loader", where, "batch size must be positive, given ", batch_size);
}

std::vector<Draw> Order::draws(int64_t step) const {
  std::vector<Draw> out;
  out.reserve(static_cast<size_t>(batch_size_));
  std::shared_ptr<const std::vector<int64_t>> order;
  for (int64_t i = 0; i < batch_size_; ++i) {
    const int64_t position = step * batch_size_ + i, epoch = position / count_, place = position % count_;
    if (i == 0 || place == 0) {
      const std::lock_guard lock(cache_->mutex);
      const size_t seat = static_cast<size_t>(epoch % 2);
      if (cache_->epochs[seat] != epoch) {
        cache_->orders[seat] =
            std::make_shared<std::vector<int64_t>>(permutation(count_, seed_, static_cast<uint32_t>(epoch)));
        cache_->epochs[seat] = epoch;
      }
      order = cache_->orders[seat];
    }
    out.push_back({(*order)[static_cast<size_t>(place)], static_cast<uint32_t>(epoch)});
  }
  return out;
}

struct Prefetcher::State {
  const BatchSource& source;
  const size_t depth;
  int64_t step;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Batch> ready;
  std::exception_ptr failure;  // of the step after those in `ready`
  bool stop = false;
  std::thread thread{};

  State(const BatchSource& from, int64_t first, int64_t most)
      : source(from), depth(static_cast<size_t>(most)), step(first) {}

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return stop || ready.size() < depth; });
      if (stop) return;
      lock.unlock();
      Batch made;
      std::exception_ptr thrown;
      try {
        made = source.batch(step++);
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      if (thrown)
        failure = thrown;
      else
        ready.push_back(std::move(made));
      changed.notify_all();
      if (failure) return;
    }
  }
};

Prefetcher::Prefetcher(const BatchSource& source, int64_t first_step, int64_t depth)
    : state_(std::make_shared<State>(source, first_step, depth)) {
  require(depth > 0, "loader", Where(), "at least one batch is made ahead, given ", depth);
  state_->thread = std::thread([state = state_.get()] { state->work(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

Batch Prefetcher::next() {
  const autograd::Phase phase("wait for data");
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return !state_->ready.empty() || state_->failure; });
  if (state_->ready.empty()) std::rethrow_exception(state_->failure);
  Batch out = std::move(state_->ready.front());
  state_->ready.pop_front();
  lock.unlock();
  state_->changed.notify_all();
  return out;
}

}  // namespace cinta::data
