// A claim is a compare-and-swap of one word of a share; everything else follows from who holds a tile.
#include "cinta/backends/cpu/team.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "cinta/core/error.h"

#if CINTA_WITH_OPENMP
#include <omp.h>
#endif

namespace cinta {
namespace {

thread_local bool inside_tile = false;

/// A thread whose share is done gives those that are at theirs as long again, but no longer than this, before it takes
/// tiles of them: what a tile reads and writes lies in its owner's caches, where the next loop will want it. Where two
/// threads share no cache, 100 us leave 0.87 of the time of a step of MLP 784-256-128-10, 20 us all of it. Where they
/// do, a step of BERT-tiny takes 0.95 to 0.98 of its time with 10 us instead of 100.
constexpr std::chrono::microseconds longest_patience{10}, longest_patience_far_apart{100};

/// A moment's rest for the other thread of this core.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Moves thread `index` to the processors that OMP_PLACES gives it, where OMP_PROC_BIND asks for places: OpenMP has
/// then bound the calling thread to the first, and threads that it starts inherit that.
void take_place([[maybe_unused]] int index) {
#if CINTA_WITH_OPENMP
  if (omp_get_proc_bind() == omp_proc_bind_false || omp_get_num_places() < 1) return;
  const int place = index % omp_get_num_places();
  std::vector<int> processors(static_cast<size_t>(omp_get_place_num_procs(place)));
  omp_get_place_proc_ids(place, processors.data());
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(static_cast<size_t>(processor), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
#endif
}

/// How many forks lie between this process and the one that was started: asked in each loop, where the process's number
/// would be a call of the system.
int forks() {
  static std::atomic<int> count{0};
  [[maybe_unused]] static const int counts = pthread_atfork(nullptr, nullptr, [] { ++count; });
  return count.load(std::memory_order_relaxed);
}

}  // namespace

bool Team::inside() { return inside_tile; }
bool Team::is_of_another_process() const { return forks_ != forks(); }

Team::Team(int size)
    : shares_(static_cast<size_t>(size)),
      turns_(size <= static_cast<int>(std::thread::hardware_concurrency()) ? 5000 : 0),
      forks_(forks()) {
  helpers_.reserve(static_cast<size_t>(size));
  sigset_t all, before;  // signals go to threads that have handlers' stacks
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::string refusal;
  try {
    for (int i = 1; i < size; ++i) helpers_.emplace_back([this, i] { help(i); });
  } catch (const std::exception& error) {
    refusal = error.what();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (refusal.empty()) return;
  end_helpers();
  throw ValueError(
      join("[threads] ", size, " threads wanted; the system starts no more than ", helpers_.size() + 1, ": ", refusal));
}

Team::~Team() { end_helpers(); }

void Team::end_helpers() {
  if (is_of_another_process()) {  // only their names came along, which may be those of threads of the child
    (void)new std::vector(std::move(helpers_));
    return;
  }
  ends_ = true;
  ++loop_;
  loop_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Team::run(uint32_t tiles, uint32_t how, Body body, const void* context) {
  look_who_is_late();
  body_ = body, context_ = context;
  tiles_.store(tiles, std::memory_order_relaxed);
  // Locked, so that what this thread stored past the caches comes before the loop.
  done_.exchange(0, std::memory_order_relaxed);
  const uint32_t loop = loop_.load(std::memory_order_relaxed) + 1;
  for (int i = 0; i < size(); ++i)
    shares_[static_cast<size_t>(i)].left.store(uint64_t{loop} << 32 | how | (first_of(i + 1) - first_of(i)),
                                               std::memory_order_release);
  if (how != one_each) shares_[0].thread.begin();  // helpers look where it is
  loop_.store(loop);                               // comes before the look for sleepers
  loop_.notify_all();
  inside_tile = true;
  if (how == one_each)
    do_tile(0), finish(1);
  else
    take_part(0);
  inside_tile = false;
  const uint32_t wanted = how == one_each ? static_cast<uint32_t>(size()) : tiles;
  for (int turn = 0; done_.load(std::memory_order_acquire) != wanted; ++turn) {
    if (turn < turns_) {
      pause();
      continue;
    }
    rescue_others(0);
    if (const uint32_t now = done_.load(std::memory_order_acquire); now != wanted)
      done_.wait(now, std::memory_order_acquire);
  }
  if (failure_) [[unlikely]]
    std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Team::do_tile(int64_t tile) {
  try {
    body_(context_, tile);
  } catch (...) {
    const std::lock_guard lock(failing_);
    if (failure_ && failed_tile_ < tile) return;
    failure_ = std::current_exception();
    failed_tile_ = tile;
  }
}

void Team::take_part(int index) {
  RescuableThread& thread = shares_[static_cast<size_t>(index)].thread;
  if (index > 0) {  // the calling thread has begun before the loop
    if (turns_ > 0) thread.keep_away_from(shares_[0].thread, size());
    thread.begin();
  }
  claim_all(index);
  thread.end();
}

void Team::rescue_others(int index) {
  if (turns_ == 0) return;  // more threads than processors
  const uint32_t loop = loop_.load(std::memory_order_acquire);
  for (int i = 0; i < size(); ++i) {
    if (done_.load(std::memory_order_acquire) == tiles_ || loop_.load(std::memory_order_relaxed) != loop) return;
    RescuableThread& other = shares_[static_cast<size_t>(i)].thread;
    // The calling thread, for which all wait between loops, keeps the better processor.
    if (i != index && (i == 0 ? other.trade_processors() : other.lend_processor())) return;
  }
}

void Team::claim_all(int index) {
  using Clock = std::chrono::steady_clock;
  const uint32_t loop = loop_.load(std::memory_order_relaxed);
  const Clock::time_point begin = Clock::now();
  if (unclaimed(index) > 0)  // or it came too late for all
    shares_[static_cast<size_t>(index)].begun.store(begin.time_since_epoch() / std::chrono::nanoseconds(1),
                                                    std::memory_order_relaxed);
  claim_share(index);
  bool waits = false;
  for (int i = 1; i < size(); ++i) {
    const int other = (index + i) % size();
    if (unclaimed(other) == first_of(other + 1) - first_of(other))
      claim_share(other);
    else
      waits |= unclaimed(other) > 0;
  }
  if (!waits) return;
  const std::chrono::microseconds patience = far_apart() ? longest_patience_far_apart : longest_patience;
  // Looks at what all write once, when they end, and not at the shares, whose owners would have to fetch them back.
  const Clock::time_point end = Clock::now(), until = end + std::min<Clock::duration>(end - begin, patience);
  for (; turns_ > 0 && Clock::now() < until; pause())
    if (done_.load(std::memory_order_acquire) == tiles_ || loop_.load(std::memory_order_relaxed) != loop) return;
  for (int i = 1; i < size(); ++i) claim_share((index + i) % size());
}

void Team::look_who_is_late() {
  // On Zen 4, in a virtual machine whose two threads are moved about, it takes 80 to 200 ns where they share a cache,
  // 400 to 700 where they do not. One that slept, or did something else, says nothing.
  constexpr int64_t late = 300, busy = 2000;
  const auto begun = [](const Share& share) { return share.begun.load(std::memory_order_relaxed); };
  const int64_t took = begun(shares_.back()) - begun(shares_.front());
  const int times = late_.load(std::memory_order_relaxed) + (took > late ? 1 : -1);
  if (took > 0 && took < busy) late_.store(std::clamp(times, 0, most_late), std::memory_order_relaxed);
}

void Team::claim_share(int share) {
  uint32_t claimed = 0;
  while (claim_one(share)) ++claimed;
  if (claimed) finish(claimed);
}

uint32_t Team::unclaimed(int share) const {
  return static_cast<uint32_t>(shares_[static_cast<size_t>(share)].left.load(std::memory_order_relaxed));
}

bool Team::claim_one(int share) {
  std::atomic<uint64_t>& of_share = shares_[static_cast<size_t>(share)].left;
  uint64_t seen = of_share.load(std::memory_order_acquire);
  do {
    const auto left = static_cast<uint32_t>(seen);
    if (left == 0 || left == one_each) return false;
  } while (!of_share.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel, std::memory_order_acquire));
  do_tile(first_of(share + 1) - static_cast<uint32_t>(seen));
  return true;
}

void Team::finish(uint32_t tiles) {
  done_.fetch_add(tiles, std::memory_order_acq_rel);
  done_.notify_one();
}

uint32_t Team::wait_for_loop(int index, uint32_t seen) {
  for (int turn = 0;; ++turn) {
    const uint32_t now = loop_.load(std::memory_order_acquire);
    if (now != seen) return now;
    if (turn < turns_) {
      pause();
      continue;
    }
    rescue_others(index);
    loop_.wait(seen, std::memory_order_acquire);
  }
}

void Team::help(int index) {
  take_place(index);
  inside_tile = true;  // loops within a tile stay on their thread
  for (uint32_t seen = 0;;) {
    seen = wait_for_loop(index, seen);
    if (ends_) return;
    if (shares_[static_cast<size_t>(index)].left.load(std::memory_order_acquire) == (uint64_t{seen} << 32 | one_each))
      do_tile(index), finish(1);
    else
      take_part(index);
  }
}

}  // namespace cinta
