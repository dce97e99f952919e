// The order's cache and the thread that works ahead.
#include "cinta/data/loader.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <numeric>
#include <thread>

#include "cinta/autograd/mode.h"
#include "cinta/data/permutation.h"

namespace cinta::data {
namespace {

/// From window to window the tokens of a batch still deviate, by an eighth (1 / sqrt(64)) of what they do unbalanced:
/// with 64 samples a batch as much as a single length. Longer windows would gain little and move draws further.
constexpr int64_t most_window_batches = 64;

/// What was made last of a numbered series: of two neighbours, as a batch or a window may lie across two epochs.
template <class T>
class LastTwo {
 public:
  template <class Make>
  std::shared_ptr<const T> get(int64_t number, const Make& make) {
    const std::lock_guard lock(mutex_);
    const auto seat = static_cast<size_t>(number % 2);
    if (numbers_[seat] != number) {
      made_[seat] = std::make_shared<const T>(make());
      numbers_[seat] = number;
    }
    return made_[seat];
  }

 private:
  std::mutex mutex_;
  std::array<std::shared_ptr<const T>, 2> made_;
  std::array<int64_t, 2> numbers_{-1, -1};
};

}  // namespace

struct Order::Cache {
  LastTwo<std::vector<int64_t>> permutations;
  LastTwo<std::vector<Draw>> windows;
};

bool Batch::operator==(const Batch&) const = default;

Order::Order(int64_t count, int64_t batch_size, uint64_t seed, Where where, std::span<const int32_t> lengths)
    : count_(count), batch_size_(batch_size), seed_(seed), lengths_(lengths), cache_(std::make_shared<Cache>()) {
  require(count > 0, "loader", where, "there is no sample");
  require(batch_size > 0, "loader", where, "batch size must be positive, given ", batch_size);
  require(lengths.empty() || std::ssize(lengths) == count, "loader", where, "a length for each of ", count,
          " samples, or none, given ", lengths.size());
  // No longer than an epoch, so that a window of several batches has a sample twice at most.
  window_batches_ = std::clamp(count / batch_size, int64_t{1}, most_window_batches);
}

std::vector<Draw> Order::draws(int64_t step) const {
  if (lengths_.empty()) return stream(step * batch_size_, batch_size_);
  const int64_t window = step / window_batches_;
  const auto dealt = cache_->windows.get(window, [&] { return deal(window); });
  const auto first = dealt->begin() + step % window_batches_ * batch_size_;
  return {first, first + batch_size_};
}

std::vector<Draw> Order::stream(int64_t begin, int64_t count) const {
  std::vector<Draw> out;
  out.reserve(static_cast<size_t>(count));
  std::shared_ptr<const std::vector<int64_t>> order;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = begin + i, place = position % count_;
    const auto epoch = static_cast<uint32_t>(position / count_);
    if (i == 0 || place == 0)
      order = cache_->permutations.get(epoch, [&] { return permutation(count_, seed_, epoch); });
    out.push_back({(*order)[static_cast<size_t>(place)], epoch});
  }
  return out;
}

// Longest first, each batch takes one draw a round, and who was first in a round is last in the next. Of two batches
// one gains in every even round, and the other in every odd one, what lies between their draws. As rounds follow each
// other by length, all that together is no more than what lies between the longest and the shortest draw.
std::vector<Draw> Order::deal(int64_t window) const {
  const int64_t count = window_batches_ * batch_size_;
  const std::vector<Draw> drawn = stream(window * count, count);
  std::vector<size_t> falling(drawn.size()), batches(drawn.size());
  std::iota(falling.begin(), falling.end(), size_t{0});
  std::ranges::stable_sort(falling, std::ranges::greater(),
                           [&](size_t at) { return lengths_[static_cast<size_t>(drawn[at].sample)]; });
  const auto seats = static_cast<size_t>(window_batches_);
  for (size_t i = 0; i < falling.size(); ++i) {
    const size_t round = i / seats, turn = i % seats;
    batches[falling[i]] = round % 2 == 0 ? turn : seats - 1 - turn;
  }
  std::vector<Draw> out(drawn.size());
  std::vector<size_t> filled(seats);
  for (size_t at = 0; at < drawn.size(); ++at) {  // as they were drawn, also within a batch
    const size_t batch = batches[at];
    out[batch * static_cast<size_t>(batch_size_) + filled[batch]++] = drawn[at];
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
