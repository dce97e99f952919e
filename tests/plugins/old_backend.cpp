// A backend built against another version of the interface. It must not be let in; but it has claimed a column before
// it is asked.
#include <cstdlib>
#include <cstring>

#include "cinta/core/plugin.h"
#include "cinta/core/runtime.h"

namespace {

class EarlyRuntime final : public cinta::Runtime {
 public:
  void* allocate(cinta::Device, int64_t bytes) override {
    return std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64));
  }
  void release(cinta::Device, void* data, int64_t) noexcept override { std::free(data); }
  void copy(cinta::Stream, void* destination, const void* source, int64_t bytes) override {
    if (bytes) std::memcpy(destination, source, static_cast<size_t>(bytes));
  }
  bool host_accessible() const override { return true; }
};

EarlyRuntime runtime;
const cinta::Device early = cinta::claim_backend("early", runtime);

}  // namespace

extern "C" uint32_t cinta_backend_abi_version() { return cinta::backend_abi_version + 41; }
extern "C" cinta::Device cinta_backend_register() { std::abort(); }
