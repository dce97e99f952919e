// The loop over tiles, on the calling thread's team, and the workspaces.
#include "cinta/backends/cpu/parallel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "cinta/backends/cpu/team.h"
#include "cinta/backends/cpu/thread_own.h"
#include "cinta/backends/threads.h"
#include "cinta/core/allocator.h"
#include "cinta/core/context.h"
#include "cinta/core/error.h"

#if CINTA_WITH_OPENMP
#include <omp.h>
#endif

namespace cinta {
namespace {

/// What OMP_NUM_THREADS says, which users know and oneDNN reads too, or else the processors this process may use.
int threads_at_first() {
#if CINTA_WITH_OPENMP
  return omp_get_max_threads();
#else
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#endif
}

thread_local int wanted_threads = 0;  // none yet

std::unique_ptr<Team>& own_team() { return thread_own<std::unique_ptr<Team>>(); }

/// The calling thread's as it is; null where there is none.
Team* team_there_is() {
  const std::unique_ptr<Team>& own = own_team();
  return own && own->size() == threads() && !own->is_of_another_process() && !Team::inside() ? own.get() : nullptr;
}

/// The calling thread's; null where it works alone.
Team* team() {
  const int size = threads();
  if (size < 2 || Team::inside()) return nullptr;
  if (Team* const there = team_there_is()) return there;
  std::unique_ptr<Team>& own = own_team();
  own.reset();
  own = std::make_unique<Team>(size);
  return own.get();
}

std::atomic<bool> rehearsing{false};
thread_local std::optional<bool> pretended_far;

}  // namespace

int threads() { return wanted_threads ? wanted_threads : wanted_threads = threads_at_first(); }

void set_threads(int count) {
  require(count >= 1, "threads", Where(), "at least 1 thread, given ", count);
  wanted_threads = count;
  std::unique_ptr<Team>& own = own_team();
  if (own && own->size() != count && !Team::inside()) own.reset();  // a fork may follow
}

void parallel_tiles(int64_t count, int64_t grain, void (*body)(const void*, int64_t, int64_t), const void* context) {
  const int64_t tiles = (count + grain - 1) / grain;
  const auto run = [&](int64_t tile) {
    if (tile < tiles) body(context, tile * grain, std::min(count, (tile + 1) * grain));
  };
  const auto call = [](const void* run_tile, int64_t tile) { (*static_cast<decltype(&run)>(run_tile))(tile); };
  const bool once = rehearsing.load(std::memory_order_relaxed);
  if (Team* const helpers = tiles > 1 ? team() : nullptr) {
    if (!once) return helpers->claim(tiles, call, &run);
    helpers->each(call, &run);
    // Tiles of few may fall to any thread, and those at the end may ask for less, or for more: who had no other does
    // the first, too, and who had none also the last, one after another.
    std::mutex one_at_a_time;
    const auto run_others = [&](int64_t thread) {
      const std::lock_guard lock(one_at_a_time);
      if (thread >= tiles - 1) run(0);
      if (thread >= tiles) run(tiles - 1);
    };
    return helpers->each(
        [](const void* first, int64_t thread) { (*static_cast<decltype(&run_others)>(first))(thread); }, &run_others);
  }
  for (int64_t tile = 0; tile < (once ? std::min<int64_t>(tiles, 1) : tiles); ++tile) run(tile);
  // Locked, as a team's loop ends, so that what was stored past the caches comes before all that follows. (A fence is
  // nothing that the thread sanitizer knows.)
  std::atomic<bool> ended = false;
  ended.exchange(true);
}

bool threads_far_apart() { return pretended_far.value_or(own_team() && own_team()->far_apart()); }

void pretend_far_apart(std::optional<bool> far) { pretended_far = far; }

namespace {

std::array<std::optional<WorkspaceBlock>, 2>& blocks() {
  return thread_own<std::array<std::optional<WorkspaceBlock>, 2>>();
}

}  // namespace

void rehearse_tiles(bool on) {
  const auto begin_anew = [](const void*, int64_t) {
    for (auto& block : blocks()) block.reset();
  };
  // To begin may throw, before anything is changed; to end may not.
  Team* const helpers = on ? team() : team_there_is();
  rehearsing = on;
  helpers ? helpers->each(begin_anew, nullptr) : begin_anew(nullptr, 0);
}

void* scratch(int64_t bytes, Workspace use) {
  std::optional<WorkspaceBlock>& block = blocks()[static_cast<size_t>(use)];
  if ((block ? block->bytes() : 0) < bytes) {
    block.reset();
    block.emplace(bytes, context().lasting());
  }
  return block ? block->data() : nullptr;
}

WorkspaceBlock::WorkspaceBlock(int64_t bytes) : WorkspaceBlock(bytes, context()) {}

WorkspaceBlock::WorkspaceBlock(int64_t bytes, Context& owner)
    : pool_(owner.pool(cpu)), data_(pool_->allocate(bytes, Category::workspace)), bytes_(bytes) {}

WorkspaceBlock::~WorkspaceBlock() { pool_->release(data_, bytes_, Category::workspace); }

}  // namespace cinta
