// A backend that calls itself by a name that is taken.
#include "cinta/core/plugin.h"
#include "cinta/core/runtime.h"

namespace {
class NoRuntime final : public cinta::Runtime {
 public:
  void* allocate(cinta::Device, int64_t) override { return nullptr; }
  void release(cinta::Device, void*, int64_t) noexcept override {}
  void copy(cinta::Stream, void*, const void*, int64_t) override {}
  bool host_accessible() const override { return false; }
};
}  // namespace

extern "C" uint32_t cinta_backend_abi_version() { return cinta::backend_abi_version; }
extern "C" cinta::Device cinta_backend_register() {
  static NoRuntime runtime;
  return cinta::claim_backend("cpu", runtime);
}
