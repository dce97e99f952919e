// A caching pool of one device's memory, counted by category: a warm training step asks the machine for nothing.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "cinta/core/device.h"

namespace cinta {

/// What memory is for.
enum class Category : uint8_t { weights, gradients, optimizer, activations, workspace };
inline constexpr int category_count = 5;
std::string_view name_of(Category category);

/// Counts of one pool, in bytes; a block counts with its rounded size.
struct MemoryStatistics {
  std::array<int64_t, category_count> live{}, peak{};  ///< by category, each peak at its own moment
  int64_t live_total = 0, peak_total = 0;
  int64_t requests = 0;         ///< blocks asked of the pool
  int64_t system_requests = 0;  ///< blocks the pool asked of the machine: 0 more in a warm step
};

class Pool {
 public:
  explicit Pool(Device device) : device_(device) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// At least `bytes`, aligned to 64. Throws OutOfMemory saying what is alive and what would help.
  void* allocate(int64_t bytes, Category category);
  void release(void* data, int64_t bytes, Category category) noexcept;
  /// Gives the cached free blocks back to the machine.
  void trim() noexcept;
  MemoryStatistics statistics() const;
  /// Starts the peaks anew from what is alive.
  void reset_peak();

 private:
  void trim_locked() noexcept;
  static constexpr int size_classes = 512;
  mutable std::mutex mutex_;
  Device device_;
  std::array<std::vector<void*>, size_classes> free_;
  MemoryStatistics statistics_;
};

}  // namespace cinta
