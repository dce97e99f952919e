// The meta device: shapes and byte counts of a computation, with no memory and no values.
#include "cinta/core/runtime.h"

#include "cinta/core/error.h"

namespace cinta {
namespace {

class MetaRuntime final : public Runtime {
 public:
  /// Every block has the same address, which nobody may read.
  void* allocate(Device, int64_t) override { return &nowhere_; }
  void release(Device, void*, int64_t) noexcept override {}
  void copy(Stream, void*, const void*, int64_t bytes) override {
    require<DeviceError>(bytes == 0, "copy", Where(), "the meta device has shapes only, no values to read or write");
  }
  bool host_accessible() const override { return false; }
  int64_t segment_bytes() const override { return 0; }

 private:
  alignas(64) char nowhere_ = 0;
};

MetaRuntime runtime;
const RegisterRuntime here{meta, "meta", runtime};

}  // namespace
}  // namespace cinta
