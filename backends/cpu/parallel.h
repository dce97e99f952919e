// The one parallel loop and the one source of workspace of the CPU backend.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

namespace cinta {

class Context;
class Pool;

/// parallel_for without the type of its body.
void parallel_tiles(int64_t count, int64_t grain, void (*body)(const void* context, int64_t begin, int64_t end),
                    const void* context);

/// Calls `body(begin, end)` once for each tile [0, grain), [grain, 2*grain), .. of [0, count), on all threads, in no
/// order. Tiles depend on the sizes alone, so a result that is combined tile by tile never depends on the number of
/// threads. Threads claim tiles one at a time: one that is slow, or sleeps, delays the others by a tile at most.
/// Choose a grain worth some 10 us: up to one tile, and inside another parallel_for, all runs on the calling thread.
/// What the lowest tile that fails throws is thrown here: when the others are done, or on one thread at once.
template <class Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  parallel_tiles(
      count, grain,
      [](const void* context, int64_t begin, int64_t end) { (*static_cast<const Body*>(context))(begin, end); }, &body);
}

/// Elements of one tile where little is done with each.
inline constexpr int64_t elements_of_tile = 16384;
/// Rows of `columns` elements that make such a tile, one at least.
constexpr int64_t rows_of_tile(int64_t columns) {
  return columns < elements_of_tile ? elements_of_tile / (columns < 1 ? 1 : columns) : 1;
}

/// From now on each thread does one tile of a parallel_for, if there are several, and workspaces start anew: what a
/// kernel asks for, on whatever threads its tiles fall, is seen without doing its work. No kernel runs meanwhile.
void rehearse_tiles(bool on);

/// True while what one of the calling thread's team has written reaches others late, since they share no cache; false
/// on their threads. A kernel may choose by it how it stores its results, and nothing else.
bool threads_far_apart();
/// For tests: what threads_far_apart() says from now on; without a value, what is measured.
void pretend_far_apart(std::optional<bool> far);

/// Who uses a workspace: one kernel call, as a whole, or one tile inside it.
enum class Workspace { call, tile };

/// At least `bytes` of memory, aligned to 64, of this thread and `use`, valid until the next request of the same thread
/// and use. It only grows, counts as workspace of the CPU's pool, and outlives a step that is captured. Tiles of one
/// loop that ask for the same find what the thread's tile before has left there.
void* scratch(int64_t bytes, Workspace use);

/// The same as room for `count` values of T.
template <class T>
T* scratch(int64_t count, Workspace use) {
  return static_cast<T*>(scratch(count * static_cast<int64_t>(sizeof(T)), use));
}

/// At least `bytes` of workspace, aligned to 64, of the pool that is current, until the end of its life. What few calls
/// need much of is better given back at their end than kept, as scratch() is: others use it meanwhile.
class WorkspaceBlock {
 public:
  explicit WorkspaceBlock(int64_t bytes);
  WorkspaceBlock(int64_t bytes, Context& owner);
  ~WorkspaceBlock();
  WorkspaceBlock(const WorkspaceBlock&) = delete;
  WorkspaceBlock& operator=(const WorkspaceBlock&) = delete;
  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<Pool> pool_;
  void* data_;
  int64_t bytes_;
};

}  // namespace cinta
