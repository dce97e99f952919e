// A caching pool of one device's memory, counted by category: a warm training step asks the machine for nothing.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "cinta/core/device.h"
#include "cinta/core/large_blocks.h"
#include "cinta/core/memory.h"

namespace cinta {

class Pool {
 public:
  explicit Pool(Device device) : device_(device) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// At least `bytes`, aligned to 64. Throws OutOfMemory saying what is alive and what would help.
  void* allocate(int64_t bytes, Category category);
  void release(void* data, int64_t bytes, Category category) noexcept;
  /// The same for the bytes and category of `block`, which the pool knows of until it is released.
  void* allocate(LiveBlock& block);
  void release(void* data, LiveBlock& block) noexcept;
  /// Gives the cached free blocks back to the machine.
  void trim() noexcept;
  MemoryStatistics statistics() const;
  /// Starts the peaks anew from what is alive.
  void reset_peak();

 private:
  void* allocate_locked(int64_t bytes, Category category);
  /// Of the machine; null where it has none left.
  void* ask(int64_t bytes);
  void* take_large(int64_t bytes, Category category);
  void release_locked(void* data, int64_t bytes, Category category) noexcept;
  [[noreturn]] void throw_out_of_memory(int64_t bytes, int64_t cached) const;
  /// Gives back what lies free; returns how many bytes.
  int64_t trim_locked() noexcept;
  static constexpr int size_classes = 512;
  mutable std::mutex mutex_;
  Device device_;
  std::array<std::vector<void*>, size_classes> free_;
  /// Weights and what an optimizer keeps lie apart from what comes and goes in each step: they would leave holes
  /// between them. Either serves both where the machine has nothing left.
  LargeBlocks lasting_{std::numeric_limits<int64_t>::max()};
  /// The gradients of a layer are the largest. In a BERT-base's step 531 MiB are touched for 457 that are alive at
  /// once, 586 if all were cut from the beginnings.
  LargeBlocks passing_{16 << 20};
  MemoryStatistics statistics_;
  LiveBlock* newest_ = nullptr;  ///< of those alive, which lead on to the older ones
};

}  // namespace cinta
