// The CPU's memory, in two separately counted halves: index 0 is the device, index 1 stands for its host. Both together
// are no more than the process may use.
#include "cinta/core/runtime.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/cpu/memory_limit.h"
#include "cinta/backends/cpu/parallel.h"

namespace cinta {
namespace {

class CpuRuntime final : public Runtime {
 public:
  void* allocate(Device device, int64_t bytes) override {
    check_isa();
    require<DeviceError>(device.index <= host.index, "device", Where(),
                         "the CPU has one device, cpu, and one host memory: ", device);
    const int64_t room = room_of(bytes), unit = unit_of(bytes);
    if (!count(room)) return nullptr;
    void* data = std::aligned_alloc(static_cast<size_t>(unit), static_cast<size_t>(room));
    if (!data) lent_ -= room;
#ifdef MADV_HUGEPAGE
    // Rows walk through many buffers at once, and on small pages wait for the processor to find the next of each.
    if (unit == huge_page && data) madvise(data, static_cast<size_t>(room), MADV_HUGEPAGE);
#endif
    return data;
  }
  void release(Device, void* data, int64_t bytes) noexcept override {
    std::free(data);
    lent_ -= room_of(bytes);
  }
  void copy(Stream, void* destination, const void* source, int64_t bytes) override {
    if (bytes) std::memcpy(destination, source, static_cast<size_t>(bytes));
  }
  bool host_accessible() const override { return true; }
#ifdef __SANITIZE_ADDRESS__
  int64_t segment_bytes() const override { return 0; }  // so that a step beyond a block's end is seen
#else
  int64_t segment_bytes() const override { return std::min<int64_t>(1 << 30, memory_limit() / 16); }
#endif
  void rehearse(bool on) override {
    rehearse_tiles(on);
    rehearsing_ = on;
  }

 private:
  static constexpr int64_t huge_page = 1 << 21;
  static int64_t unit_of(int64_t bytes) { return bytes < huge_page ? 64 : huge_page; }
  static int64_t room_of(int64_t bytes) { return (bytes + unit_of(bytes) - 1) / unit_of(bytes) * unit_of(bytes); }

  /// Counts bytes that are about to be lent, unless there are not so many left: the system would lend them, and end the
  /// process when it comes to use them. A rehearsal uses little of what it asks for.
  bool count(int64_t bytes) {
    int64_t lent = lent_;
    do {
      if (lent > memory_limit() - bytes && !rehearsing_) return false;
    } while (!lent_.compare_exchange_weak(lent, lent + bytes));
    return true;
  }

  std::atomic<int64_t> lent_{0};
  std::atomic<bool> rehearsing_{false};
};

CpuRuntime runtime;
const RegisterRuntime here{cpu, "cpu", runtime};

}  // namespace
}  // namespace cinta
