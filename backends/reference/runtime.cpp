// The reference column works in host memory.
#include "cinta/core/runtime.h"

#include <cstdlib>
#include <cstring>

namespace cinta {
namespace {

class ReferenceRuntime final : public Runtime {
 public:
  void* allocate(Device, int64_t bytes) override {
    constexpr int64_t line = 64;
    return std::aligned_alloc(line, static_cast<size_t>((bytes + line - 1) / line * line));
  }
  void release(Device, void* data, int64_t) noexcept override { std::free(data); }
  void copy(Stream, void* destination, const void* source, int64_t bytes) override {
    if (bytes) std::memcpy(destination, source, static_cast<size_t>(bytes));
  }
  bool host_accessible() const override { return true; }
};

ReferenceRuntime runtime;
const RegisterRuntime here{reference, "reference", runtime};

}  // namespace
}  // namespace cinta
