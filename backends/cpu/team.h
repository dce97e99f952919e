// The threads that share a kernel's tiles. Nobody waits for a thread that has no tile: one that the system has given to
// another program delays a loop by the tile in its hands, and not by its being late, as it would a barrier of OpenMP.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace cinta {

/// Threads beside the calling one, which alone may use the team and takes part in all it does.
class Team {
 public:
  using Body = void (*)(const void* context, int64_t tile);

  /// `size` threads with the calling one, at least 2. They sleep unless there is work.
  explicit Team(int size);
  ~Team();
  Team(const Team&) = delete;

  int size() const { return static_cast<int>(shares_.size()); }
  /// Calls `body(context, tile)` once for each of fewer than 2^31 tiles. Threads claim them one at a time: each those
  /// of its own share first, the same from loop to loop, whose operands its caches hold; then what others have left.
  void claim(int64_t tiles, Body body, const void* context) { run(static_cast<uint32_t>(tiles), 0, body, context); }
  /// Calls `body(context, i)` once on each thread i, the calling one being 0.
  void each(Body body, const void* context) { run(0, one_each, body, context); }
  /// True in a tile, on whatever thread.
  static bool inside();

 private:
  static constexpr uint32_t one_each = 1u << 31;

  void run(uint32_t tiles, uint32_t how, Body body, const void* context);
  void help(int index);
  bool claim_one(int share);
  void claim_all(int index);
  void finish(uint32_t tiles);
  /// The first tile of a share; where not all are as large, the calling thread's is among the larger, as it is awake.
  uint32_t first_of(size_t share) const {
    return static_cast<uint32_t>((uint64_t{tiles_} * share + shares_.size() - 1) / shares_.size());
  }
  uint32_t wait_for_loop(uint32_t seen) const;

  // Of the loop that goes on. Written while nobody holds a tile, read by who holds one, or by all of one_each.
  Body body_ = nullptr;
  const void* context_ = nullptr;
  uint32_t tiles_ = 0;

  // Of each thread: the number of the loop in the upper half, tiles of its share that nobody has claimed in the lower.
  // A claim that succeeds belongs to the loop that goes on, however late its thread is: no loop ends before all that
  // was claimed is done.
  struct alignas(64) Share {
    std::atomic<uint64_t> left{0};
  };
  std::vector<Share> shares_;
  alignas(64) std::atomic<uint32_t> done_{0};
  alignas(64) std::atomic<uint32_t> loop_{0};  ///< what sleeping threads watch
  std::atomic<bool> ends_{false};
  int turns_;  ///< looks for work before a thread sleeps
  int process_;
  std::vector<std::thread> helpers_;
};

}  // namespace cinta
