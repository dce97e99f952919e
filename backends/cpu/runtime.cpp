// The CPU's memory, in two separately counted halves: index 0 is the device, index 1 stands for its host.
#include "cinta/core/runtime.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <cstdlib>
#include <cstring>

#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/cpu/parallel.h"

namespace cinta {
namespace {

class CpuRuntime final : public Runtime {
 public:
  void* allocate(Device device, int64_t bytes) override {
    check_isa();
    require<DeviceError>(device.index <= host.index, "device", Where(),
                         "the CPU has one device, cpu, and one host memory: ", device);
    constexpr int64_t line = 64, huge_page = 1 << 21;
    const int64_t unit = bytes < huge_page ? line : huge_page;
    const auto room = static_cast<size_t>((bytes + unit - 1) / unit * unit);
    void* data = std::aligned_alloc(static_cast<size_t>(unit), room);
#ifdef MADV_HUGEPAGE
    // Rows walk through many buffers at once, and on small pages wait for the processor to find the next of each.
    if (unit == huge_page && data) madvise(data, room, MADV_HUGEPAGE);
#endif
    return data;
  }
  void release(Device, void* data, int64_t) noexcept override { std::free(data); }
  void copy(Stream, void* destination, const void* source, int64_t bytes) override {
    if (bytes) std::memcpy(destination, source, static_cast<size_t>(bytes));
  }
  bool host_accessible() const override { return true; }
#ifdef __SANITIZE_ADDRESS__
  int64_t segment_bytes() const override { return 0; }  // so that a step beyond a block's end is seen
#else
  int64_t segment_bytes() const override { return 1 << 30; }
#endif
  void rehearse(bool on) override { rehearse_tiles(on); }
};

CpuRuntime runtime;
const RegisterRuntime here{cpu, "cpu", runtime};

}  // namespace
}  // namespace cinta
