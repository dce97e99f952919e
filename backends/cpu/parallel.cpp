// The thread team (OpenMP's, shared with oneDNN, or none) and the workspaces.
#include "cinta/backends/cpu/parallel.h"
#include "cinta/core/allocator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include "cinta/backends/threads.h"
#include "cinta/core/context.h"
#include "cinta/core/error.h"

#if CINTA_WITH_OPENMP
#include <omp.h>
#endif

namespace cinta {

#if CINTA_WITH_OPENMP
int threads() { return omp_get_max_threads(); }
void set_threads(int count) {
  require(count >= 1, "threads", Where(), "at least 1 thread, given ", count);
  omp_set_num_threads(count);
}
#else
int threads() { return 1; }
void set_threads(int count) { require(count >= 1, "threads", Where(), "at least 1 thread, given ", count); }
#endif

namespace {
std::atomic<bool> rehearsing{false};
}  // namespace

void parallel_tiles(int64_t count, int64_t grain, void (*body)(const void*, int64_t, int64_t), const void* context) {
  const int64_t tiles = (count + grain - 1) / grain;
  const auto run = [&](int64_t tile) { body(context, tile * grain, std::min(count, (tile + 1) * grain)); };
  const bool once = rehearsing.load(std::memory_order_relaxed);
#if CINTA_WITH_OPENMP
  if (tiles > 1 && threads() > 1 && !omp_in_parallel()) {
    std::atomic<int64_t> next{0};
    // Always the whole team, even for few tiles: the runtime would stop and start threads when the size changes.
#pragma omp parallel
    if (once) {
      if (const int64_t tile = omp_get_thread_num(); tile < tiles) run(tile);
    } else {
      for (int64_t tile; (tile = next.fetch_add(1, std::memory_order_relaxed)) < tiles;) run(tile);
    }
    return;
  }
#endif
  for (int64_t tile = 0; tile < (once ? std::min<int64_t>(tiles, 1) : tiles); ++tile) run(tile);
}

namespace {

/// A block of the pool that was current when it last grew.
struct Block {
  std::shared_ptr<Pool> pool;
  void* data = nullptr;
  int64_t bytes = 0;
  void reset() noexcept {
    if (pool) pool->release(data, bytes, Category::workspace);
    pool.reset();
    bytes = 0;
  }
  ~Block() { reset(); }
};
thread_local std::array<Block, 2> blocks;

}  // namespace

void rehearse_tiles(bool on) {
  rehearsing = on;
#if CINTA_WITH_OPENMP
#pragma omp parallel
#endif
  for (Block& block : blocks) block.reset();
}

void* scratch(int64_t bytes, Workspace use) {
  Block& block = blocks[static_cast<size_t>(use)];
  if (block.bytes < bytes) {
    block.reset();
    const std::shared_ptr<Pool>& pool = context().pool(cpu);
    block.data = pool->allocate(bytes, Category::workspace);
    block.pool = pool;
    block.bytes = bytes;
  }
  return block.data;
}

}  // namespace cinta
