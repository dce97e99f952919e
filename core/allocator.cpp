// The pool: blocks below a MiB by size classes (eight a power of two, so at most an eighth is wasted), each with a free
// list, larger ones cut from segments; what is counted, and what is said when memory runs out.
#include "cinta/core/allocator.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <map>

#include "cinta/core/error.h"
#include "cinta/core/runtime.h"

namespace cinta {
namespace {

struct SizeClass {
  int index;  ///< -1: of a large block
  int64_t bytes;
};

SizeClass size_class(int64_t bytes) {
  constexpr int64_t smallest = 512;
  if (bytes <= smallest) return {0, smallest};
  if (bytes >= LargeBlocks::least)
    return {-1, (bytes + LargeBlocks::grain - 1) / LargeBlocks::grain * LargeBlocks::grain};
  const int log = std::bit_width(static_cast<uint64_t>(bytes - 1)) - 1;  // 2^log <= bytes-1 < 2^(log+1)
  const int64_t step = int64_t{1} << (log - 3);
  const int64_t steps = (bytes + step - 1) / step;  // in 9..16
  return {(log - 9) * 8 + static_cast<int>(steps) - 8, steps * step};
}

/// For the eye, to a tenth.
std::string mebibytes(int64_t bytes) {
  const int64_t tenths = (bytes >> 10) * 10 >> 10;
  return join(tenths / 10, ".", tenths % 10, " MiB");
}

}  // namespace

std::string_view name_of(Category category) {
  constexpr std::string_view names[] = {"weights", "gradients", "optimizer", "activations", "workspace"};
  return names[static_cast<int>(category)];
}

Pool::~Pool() { trim(); }

void* Pool::allocate(int64_t bytes, Category category) {
  std::lock_guard lock(mutex_);
  return allocate_locked(bytes, category);
}

void* Pool::allocate(LiveBlock& block) {
  std::lock_guard lock(mutex_);
  void* data = allocate_locked(block.bytes, block.category);
  block.after = newest_;
  if (newest_) newest_->before = &block;
  newest_ = &block;
  return data;
}

void* Pool::allocate_locked(int64_t bytes, Category category) {
  // The meta device gives whatever is asked for; what cannot be counted is more than any device has.
  if (bytes > int64_t{1} << 62) throw_out_of_memory(bytes, 0);
  const SizeClass fit = size_class(bytes);
  if (fit.bytes > std::numeric_limits<int64_t>::max() - statistics_.live_total) throw_out_of_memory(fit.bytes, 0);
  ++statistics_.requests;
  const auto take = [&]() -> void* {
    if (fit.index < 0) return take_large(fit.bytes, category);
    auto& cached = free_[static_cast<size_t>(fit.index)];
    if (cached.empty()) return ask(fit.bytes);
    void* last = cached.back();
    cached.pop_back();
    return last;
  };
  void* data = take();
  if (!data) {
    const int64_t given_back = trim_locked();
    data = take();
    if (!data) throw_out_of_memory(fit.bytes, given_back);
  }
  int64_t& live = statistics_.live[static_cast<int>(category)];
  int64_t& peak = statistics_.peak[static_cast<int>(category)];
  live += fit.bytes;
  if (live > peak) peak = live;
  statistics_.live_total += fit.bytes;
  if (statistics_.live_total > statistics_.peak_total) statistics_.peak_total = statistics_.live_total;
  return data;
}

void* Pool::ask(int64_t bytes) {
  void* data = runtime_of(device_).allocate(device_, bytes);
  if (!data) return nullptr;
  ++statistics_.system_requests;
  statistics_.system_bytes += bytes;
  return data;
}

void* Pool::take_large(int64_t bytes, Category category) {
  const int64_t segment = runtime_of(device_).segment_bytes();
  if (segment == 0) return ask(bytes);
  const bool lasts = category == Category::weights || category == Category::optimizer;
  LargeBlocks &blocks = lasts ? lasting_ : passing_, &others = lasts ? passing_ : lasting_;
  if (void* data = blocks.take(bytes)) return data;
  for (int64_t size : {std::max(bytes, segment), bytes})
    if (void* more = ask(size)) {
      blocks.add_segment(more, size);
      return blocks.take(bytes);
    }
  return others.take(bytes);
}

void Pool::release(void* data, int64_t bytes, Category category) noexcept {
  std::lock_guard lock(mutex_);
  release_locked(data, bytes, category);
}

void Pool::release(void* data, LiveBlock& block) noexcept {
  std::lock_guard lock(mutex_);
  release_locked(data, block.bytes, block.category);
  (block.before ? block.before->after : newest_) = block.after;
  if (block.after) block.after->before = block.before;
}

void Pool::release_locked(void* data, int64_t bytes, Category category) noexcept {
  const SizeClass fit = size_class(bytes);
  if (fit.index >= 0)
    free_[static_cast<size_t>(fit.index)].push_back(data);
  else if (!lasting_.give(data) && !passing_.give(data))
    runtime_of(device_).release(device_, data, fit.bytes);
  statistics_.live[static_cast<int>(category)] -= fit.bytes;
  statistics_.live_total -= fit.bytes;
}

void Pool::throw_out_of_memory(int64_t bytes, int64_t cached) const {
  std::string alive, largest;
  for (int i = 0; i < category_count; ++i)
    alive += join(i ? ", " : "", name_of(static_cast<Category>(i)), " ", mebibytes(statistics_.live[i]));
  // Blocks that say the same are told once, the largest first.
  std::map<std::pair<int64_t, std::string>, int64_t, std::greater<>> kinds;
  for (const LiveBlock* block = newest_; block; block = block->after) {
    // Who looked at a weight first tells nothing of it.
    const char* writer = block->category == Category::activations ? block->last_writer() : nullptr;
    ++kinds[{block->bytes, join(name_of(block->category), writer ? " by " : "", writer ? writer : "")}];
  }
  int told = 0;
  for (const auto& [kind, count] : kinds) {
    if (++told > 10) break;
    largest += join(told > 1 ? ", " : "; the largest: ", count > 1 ? join(count, " x ") : "", mebibytes(kind.first),
                    " ", kind.second);
  }
  const int64_t between = lasting_.free_bytes() + passing_.free_bytes();
  throw OutOfMemory(join("[memory] ", device_, " has no room for ", mebibytes(bytes), " more; reserved: ",
                         mebibytes(statistics_.live_total + cached + between), ", of it free and given back in vain ",
                         mebibytes(cached), ", free in pieces ", mebibytes(between), "; alive: ", alive, largest,
                         ". A smaller batch, more accumulation steps or checkpointing would help"));
}

void Pool::trim() noexcept {
  std::lock_guard lock(mutex_);
  trim_locked();
}

int64_t Pool::trim_locked() noexcept {
  int64_t given_back = 0;
  for (LargeBlocks* blocks : {&lasting_, &passing_})
    blocks->trim([&](void* data, int64_t bytes) {
      runtime_of(device_).release(device_, data, bytes);
      given_back += bytes;
    });
  for (int index = 0; index < size_classes; ++index) {
    if (free_[index].empty()) continue;
    const int64_t bytes = index == 0 ? 512 : (int64_t{1} << ((index - 1) / 8 + 9 - 3)) * ((index - 1) % 8 + 9);
    for (void* data : free_[index]) runtime_of(device_).release(device_, data, bytes);
    given_back += bytes * static_cast<int64_t>(free_[index].size());
    free_[index].clear();
  }
  return given_back;
}

MemoryStatistics Pool::statistics() const {
  std::lock_guard lock(mutex_);
  return statistics_;
}

void Pool::reset_peak() {
  std::lock_guard lock(mutex_);
  statistics_.peak = statistics_.live;
  statistics_.peak_total = statistics_.live_total;
}

}  // namespace cinta
