// Size classes (eight a power of two, so at most an eighth is wasted) and their free lists.
#include "cinta/core/allocator.h"

#include <bit>

#include "cinta/core/error.h"
#include "cinta/core/runtime.h"

namespace cinta {
namespace {

struct SizeClass {
  int index;
  int64_t bytes;
};

SizeClass size_class(int64_t bytes) {
  constexpr int64_t smallest = 512;
  if (bytes <= smallest) return {0, smallest};
  const int log = std::bit_width(static_cast<uint64_t>(bytes - 1)) - 1;  // 2^log <= bytes-1 < 2^(log+1)
  const int64_t step = int64_t{1} << (log - 3);
  const int64_t steps = (bytes + step - 1) / step;  // in 9..16
  return {(log - 9) * 8 + static_cast<int>(steps) - 8, steps * step};
}

}  // namespace

std::string_view name_of(Category category) {
  constexpr std::string_view names[] = {"weights", "gradients", "optimizer", "activations", "workspace"};
  return names[static_cast<int>(category)];
}

Pool::~Pool() { trim(); }

void* Pool::allocate(int64_t bytes, Category category) {
  const SizeClass fit = size_class(bytes);
  std::lock_guard lock(mutex_);
  ++statistics_.requests;
  void* data = nullptr;
  auto& cached = free_[fit.index];
  if (!cached.empty()) {
    data = cached.back();
    cached.pop_back();
  } else {
    ++statistics_.system_requests;
    statistics_.system_bytes += fit.bytes;
    Runtime& runtime = runtime_of(device_);
    data = runtime.allocate(device_, fit.bytes);
    if (!data) {
      trim_locked();
      data = runtime.allocate(device_, fit.bytes);
    }
    if (!data) {
      std::string alive;
      for (int i = 0; i < category_count; ++i)
        alive += join(i ? ", " : "", name_of(static_cast<Category>(i)), " ", statistics_.live[i] >> 20, " MiB");
      throw OutOfMemory(join("[memory] ", device_, " has no room for ", fit.bytes >> 20, " MiB more; alive: ", alive,
                             ". A smaller batch, more accumulation steps or checkpointing would help"));
    }
  }
  int64_t& live = statistics_.live[static_cast<int>(category)];
  int64_t& peak = statistics_.peak[static_cast<int>(category)];
  live += fit.bytes;
  if (live > peak) peak = live;
  statistics_.live_total += fit.bytes;
  if (statistics_.live_total > statistics_.peak_total) statistics_.peak_total = statistics_.live_total;
  return data;
}

void Pool::release(void* data, int64_t bytes, Category category) noexcept {
  const SizeClass fit = size_class(bytes);
  std::lock_guard lock(mutex_);
  free_[fit.index].push_back(data);
  statistics_.live[static_cast<int>(category)] -= fit.bytes;
  statistics_.live_total -= fit.bytes;
}

void Pool::trim() noexcept {
  std::lock_guard lock(mutex_);
  trim_locked();
}

void Pool::trim_locked() noexcept {
  for (int index = 0; index < size_classes; ++index) {
    if (free_[index].empty()) continue;
    const int64_t bytes = index == 0 ? 512 : (int64_t{1} << ((index - 1) / 8 + 9 - 3)) * ((index - 1) % 8 + 9);
    for (void* data : free_[index]) runtime_of(device_).release(device_, data, bytes);
    free_[index].clear();
  }
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
