// A backend from outside: a machine with memory of its own that the host cannot touch, and just the kernels that a
// perceptron's training step needs. Its arithmetic is borrowed from the CPU; addresses, copies and table cells are its
// own.
#include <cstdlib>
#include <cstring>

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/backends/kernels/optimizer.h"
#include "cinta/backends/kernels/reduce.h"
#include "cinta/backends/kernels/softmax.h"
#include "cinta/core/plugin.h"
#include "cinta/core/runtime.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace {

using namespace cinta;

// An address of this device has bit 62 set. No processor lets a program read or write there, so whoever mistakes it
// for host memory is stopped at once; arithmetic on it works as on any pointer.
constexpr uintptr_t device_bit = uintptr_t{1} << 62;
void* to_device(void* data) { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(data) | device_bit); }
void* to_host(const void* data) { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(data) & ~device_bit); }

class NpuRuntime final : public Runtime {
 public:
  void* allocate(Device, int64_t bytes) override {
    constexpr int64_t line = 64;
    void* data = std::aligned_alloc(line, static_cast<size_t>((bytes + line - 1) / line * line));
#ifdef __SANITIZE_ADDRESS__
    __lsan_ignore_object(data);  // the leak check does not know addresses of this device
#endif
    return data ? to_device(data) : nullptr;
  }
  void release(Device, void* data, int64_t) noexcept override { std::free(to_host(data)); }
  void copy(Stream, void* destination, const void* source, int64_t bytes) override {
    if (bytes) std::memcpy(to_host(destination), to_host(source), static_cast<size_t>(bytes));
  }
  bool host_accessible() const override { return false; }
};

// What this machine's processor sees of an argument: memory at its local address, anything else as it is.
template <class T>
T local(T value) {
  return value;
}
View local(View view) {
  if (view) view.data = to_host(view.data);
  return view;
}
void* local(void* data) { return to_host(data); }
kernels::Segments local(kernels::Segments s) { return {local(s.ends), local(s.rate_factors), local(s.decays)}; }

/// Fills this device's cell of `row` with the CPU's arithmetic on local addresses.
template <auto& row, class... Args>
void install_row(Kernel<void(Args...)>&, Device device) {
  row.install(
      device, [](Args... args) { row(cpu, local(args)...); }, row.floats(cpu));
}
template <auto&... rows>
void install_rows(Device device) {
  (install_row<rows>(rows, device), ...);
}

}  // namespace

extern "C" uint32_t cinta_backend_abi_version() { return cinta::backend_abi_version; }

extern "C" cinta::Device cinta_backend_register() {
  static NpuRuntime runtime;
  const Device device = claim_backend("npu", runtime);
  install_rows<kernels::fill, kernels::copy, kernels::accumulate, kernels::add, kernels::multiply, kernels::not_equal,
               kernels::divide, kernels::clamp.forward, kernels::sum, kernels::matmul, kernels::linear,
               kernels::linear_weight_backward, kernels::activation, kernels::activation_backward,
               kernels::cross_entropy, kernels::cross_entropy_backward, kernels::sum_of_squares, kernels::clip_factor,
               kernels::count_update, kernels::update_loss_scale, kernels::sgd, kernels::adamw>(device);
  return device;
}
