// The threads that share a kernel's tiles. Nobody waits long for a thread that has no tile: one that the system has
// given to another program delays a loop by the tile in its hands, and not by its being late, as it would a barrier of
// OpenMP; and who waits for that tile lends it a processor.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "cinta/backends/cpu/rescue.h"

namespace cinta {

/// Threads beside the calling one, which alone may use the team and takes part in all it does.
class Team {
 public:
  using Body = void (*)(const void* context, int64_t tile);

  /// `size` threads with the calling one, at least 2. They sleep unless there is work. Throws ValueError where the
  /// system does not start as many.
  explicit Team(int size);
  ~Team();
  Team(const Team&) = delete;

  int size() const { return static_cast<int>(shares_.size()); }
  /// Calls `body(context, tile)` once for each of fewer than 2^31 tiles. Threads claim them one at a time: each those
  /// of its own share first, the same from loop to loop, whose operands its caches hold; then shares that nobody has
  /// begun, as their threads sleep or do something else; and, after a while, what is left of those at work. Throws what
  /// the lowest tile that fails does, when all are done.
  void claim(int64_t tiles, Body body, const void* context) { run(static_cast<uint32_t>(tiles), 0, body, context); }
  /// Calls `body(context, i)` once on each thread i, the calling one being 0.
  void each(Body body, const void* context) { run(0, one_each, body, context); }
  /// True while the last thread keeps seeing late that a loop has begun: it shares no cache with the calling one.
  bool far_apart() const { return late_.load(std::memory_order_relaxed) > most_late / 2; }
  /// True in a child of the process that made it: a fork takes no threads along.
  bool is_of_another_process() const;
  /// True in a tile, on whatever thread.
  static bool inside();

 private:
  static constexpr uint32_t one_each = 1u << 31;
  static constexpr int most_late = 32;

  void run(uint32_t tiles, uint32_t how, Body body, const void* context);
  /// The body of one tile; what it throws is kept for the calling thread.
  void do_tile(int64_t tile);
  void end_helpers();
  void help(int index);
  /// claim_all(), while others may wait for this thread.
  void take_part(int index);
  /// Claims what it may of the loop that goes on, its own share first.
  void claim_all(int index);
  void claim_share(int share);
  bool claim_one(int share);
  uint32_t unclaimed(int share) const;
  void finish(uint32_t tiles);
  /// The first tile of a share; where not all are as large, the calling thread's is among the larger, as it is awake.
  uint32_t first_of(int share) const {
    const uint64_t tiles = tiles_, of_all = shares_.size();
    return static_cast<uint32_t>((tiles * static_cast<uint64_t>(share) + of_all - 1) / of_all);
  }
  uint32_t wait_for_loop(int index, uint32_t seen);
  /// Before this thread sleeps: gives its processor to one that has a tile and no processor.
  void rescue_others(int index);
  void look_who_is_late();

  // Of the loop that goes on. Written while nobody holds a tile, read by who holds one, or by all of one_each.
  Body body_ = nullptr;
  const void* context_ = nullptr;
  std::atomic<uint32_t> tiles_{0};  ///< read by those, too, that look whether there is something left
  std::mutex failing_;
  std::exception_ptr failure_;  ///< of the lowest tile that failed, as one thread alone would throw
  int64_t failed_tile_ = 0;

  /// Recent loops that the last thread came to late, less those it came to soon. Written by the calling thread.
  std::atomic<int> late_{0};

  // Of each thread: the number of the loop in the upper half, tiles of its share that nobody has claimed in the lower.
  // A claim that succeeds belongs to the loop that goes on, however late its thread is: no loop ends before all that
  // was claimed is done.
  struct alignas(64) Share {
    std::atomic<uint64_t> left{0};
    std::atomic<int64_t> begun{0};  ///< when its thread last came to a loop, in ns
    RescuableThread thread;
  };
  std::vector<Share> shares_;
  alignas(64) std::atomic<uint32_t> done_{0};
  alignas(64) std::atomic<uint32_t> loop_{0};  ///< what sleeping threads watch
  std::atomic<bool> ends_{false};
  int turns_;  ///< looks for work before a thread sleeps
  int forks_;  ///< that this process had come from
  std::vector<std::thread> helpers_;
};

}  // namespace cinta
