// What memory is for, and how much of it is in use.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace cinta {

/// What memory is for.
enum class Category : uint8_t { weights, gradients, optimizer, activations, workspace };
inline constexpr int category_count = 5;
std::string_view name_of(Category category);

/// A block that is alive, in its pool's list of them: what to tell of it when memory runs out.
struct LiveBlock {
  int64_t bytes = 0;
  Category category = Category::activations;
  /// The op that wrote it last; null: not known. Written by ops and read by whatever thread finds that memory has run
  /// out, by these two alone: built-in functions, since <atomic> takes every program that includes this time to
  /// compile.
  const char* writer = nullptr;
  const char* last_writer() const { return __atomic_load_n(&writer, __ATOMIC_RELAXED); }
  void set_writer(const char* op) { __atomic_store_n(&writer, op, __ATOMIC_RELAXED); }
  LiveBlock *before = nullptr, *after = nullptr;
};

/// Counts of one pool, in bytes; a block counts with its rounded size.
struct MemoryStatistics {
  std::array<int64_t, category_count> live{}, peak{};  ///< by category, each peak at its own moment
  int64_t live_total = 0, peak_total = 0;
  int64_t requests = 0;         ///< blocks asked of the pool
  int64_t system_requests = 0;  ///< blocks the pool asked of the machine: 0 more in a warm step
  int64_t system_bytes = 0;     ///< of those blocks
};

}  // namespace cinta
