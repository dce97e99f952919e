// The kernel table. A row is a named, typed kernel with one function per backend; a backend installs functions in its
// column. A wrong signature does not compile; a missing cell says which kernel and which backend.
#pragma once
#include <array>
#include <vector>

#include "cinta/core/device.h"
#include "cinta/core/error.h"
#include "cinta/core/view.h"

namespace cinta {

/// What all rows share, so that tests and tools can walk the table.
class KernelRow {
 public:
  constexpr explicit KernelRow(const char* name) : name_(name) {}
  const char* name() const { return name_; }
  bool has(Device device) const { return device.backend == meta.backend || level_[device.backend] >= 0; }

 protected:
  [[noreturn]] void missing(Device device) const;
  void enter_in_table();
  const char* name_;
  /// What the installed function needs of the processor; -1 while the cell is empty.
  std::array<int8_t, max_backends> level_{-1, -1, -1, -1, -1, -1, -1, -1};
};

/// Every row that has at least one function, in no particular order.
const std::vector<const KernelRow*>& kernel_table();

template <class Signature>
class Kernel;

template <class... Args>
class Kernel<void(Args...)> : public KernelRow {
 public:
  using Function = void (*)(Args...);
  constexpr explicit Kernel(const char* name) : KernelRow(name) {
    // The meta backend computes shapes only, and shapes are computed above this table: every kernel is nothing there.
    column_[meta.backend] = [](Args...) {};
  }
  void operator()(Device device, Args... args) const {
    const Function function = column_[device.backend];
    if (!function) [[unlikely]]
      missing(device);
    function(args...);
  }
  /// Puts `function` into the cell of `device` unless one of a higher level is there already.
  void install(Device device, Function function, int level = 0) {
    if (level < level_[device.backend]) return;
    level_[device.backend] = static_cast<int8_t>(level);
    column_[device.backend] = function;
    enter_in_table();
  }

 private:
  std::array<Function, max_backends> column_{};
};

/// `const Install here{kernels::softmax, cpu, softmax};` at namespace scope fills a cell at start-up.
struct Install {
  template <class Signature>
  Install(Kernel<Signature>& kernel, Device device, typename Kernel<Signature>::Function function) {
    kernel.install(device, function);
  }
};

}  // namespace cinta
