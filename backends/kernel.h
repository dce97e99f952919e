// The kernel table. A row is a named, typed kernel with one function per backend; a backend installs functions in its
// column. A wrong signature does not compile; a missing cell says which kernel and which backend.
#pragma once
#include <array>
#include <atomic>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "cinta/backends/kept_call.h"
#include "cinta/core/callback.h"
#include "cinta/core/device.h"
#include "cinta/core/error.h"
#include "cinta/core/view.h"

namespace cinta {

/// A set of floating-point types: what a backend's function computes in. Of other types it says nothing.
struct FloatTypes {
  uint8_t bits = 0xff;  ///< one a type, in the order of Dtype
  constexpr bool has(Dtype dtype) const { return !is_floating(dtype) || (bits >> static_cast<int>(dtype) & 1); }
};
inline constexpr FloatTypes all_floats, floats_of_32_bits{0xff ^ 1 << static_cast<int>(Dtype::f64)};
/// "f32, f16, bf16"
void describe(std::string& out, FloatTypes types);

class RowWatcher;

/// Says of a row that it does at once what others do one after another: an op that calls it is written with those, too,
/// and is run so where a backend has no such row.
struct Fused {};
inline constexpr Fused fused_row;

/// What all rows share, so that tests and tools can walk the table.
class KernelRow {
 public:
  constexpr KernelRow(const char* name, bool is_fused) : name_(name), is_fused_(is_fused) {}
  const char* name() const { return name_; }
  bool is_fused() const { return is_fused_; }
  bool has(Device device) const {
    return device.backend == meta.backend || (level_[device.backend] >= 0 && !left_out_[device.backend]);
  }
  /// From now on as if the backend had no such row, or with it again: to see what it is worth. No row runs meanwhile,
  /// and nobody watches.
  virtual void leave_out(Device device, bool out) = 0;
  /// What the function of `device` takes: an op asks before it asks for memory, and a call with others throws
  /// DtypeError.
  FloatTypes floats(Device device) const { return floats_[device.backend]; }

 protected:
  friend void watch_rows(Device device, RowWatcher* watcher);
  /// Moves the function of `device` out of its cell, where calls find it at once, or back.
  virtual void set_aside(Device device, bool aside) = 0;
  [[noreturn]] void missing(Device device) const;
  void check_type(Device device, const View& view) const;
  void enter_in_table();
  const char* name_;
  bool is_fused_;
  std::array<bool, max_backends> left_out_{};
  /// What the installed function needs of the processor; -1 while the cell is empty.
  std::array<int8_t, max_backends> level_{-1, -1, -1, -1, -1, -1, -1, -1};
  std::array<FloatTypes, max_backends> floats_{};
};

/// Every row that has at least one function, in no particular order.
const std::vector<KernelRow*>& kernel_table();

/// Sees the calls of rows from outside: profilers, counters.
class RowWatcher {
 public:
  virtual ~RowWatcher() = default;
  /// A row is about to run; it has run. One that throws is never heard of again, and a row may call another. `views`
  /// are its operands in order, absent ones too; those within a struct are not seen.
  virtual void before(const KernelRow& row, std::span<const View> views) = 0;
  virtual void after(const KernelRow& row, std::span<const View> views) = 0;
  /// Whether the call that has just run is to be kept; keep() is then given it.
  virtual bool keeps_calls() const { return false; }
  virtual void keep(KeptCall) {}
};
/// From now on `watcher` sees the rows of `device`, whatever thread calls them; null: nobody does, and calls under way
/// on other threads have ended when this returns: of two watched calls on two threads one may say so. The functions of
/// watched rows stand aside, so that a call finds an empty cell and asks; a call that nobody watches asks nothing.
/// Throws ValueError where another watches already.
void watch_rows(Device device, RowWatcher* watcher);
RowWatcher* row_watcher(Device device);

/// A call that found its cell empty. Who watches, if anybody still does, stays until it ends, unless the row's own
/// thread sends him away.
class WatchedCall {
 public:
  explicit WatchedCall(Device device);
  ~WatchedCall();
  WatchedCall(const WatchedCall&) = delete;
  RowWatcher* watcher() const { return watcher_; }

 private:
  Device device_;
  RowWatcher* watcher_;
};

template <class Signature>
class Kernel;

template <class... Args>
class Kernel<void(Args...)> : public KernelRow {
 public:
  using Function = void (*)(Args...);
  constexpr explicit Kernel(const char* name) : Kernel(name, false) {}
  constexpr Kernel(const char* name, Fused) : Kernel(name, true) {}
  void operator()(Device device, Args... args) const {
    if (floats(device).bits != all_floats.bits) (check(device, args), ...);
    const Function function = read(column_[device.backend]);
    if (!function) [[unlikely]]
      return call_watched(device, args...);
    function(args...);
  }
  /// Puts `function`, which takes `floats` in its views, into the cell of `device` unless one of a higher level is
  /// there already.
  void install(Device device, Function function, FloatTypes floats = all_floats, int level = 0) {
    if (level < level_[device.backend]) return;
    level_[device.backend] = static_cast<int8_t>(level);
    floats_[device.backend] = floats;
    column_[device.backend] = function;
    enter_in_table();
  }
  void leave_out(Device device, bool out) override {
    if (left_out_[device.backend] == out) return;
    left_out_[device.backend] = out;
    std::swap(column_[device.backend], hidden_[device.backend]);
  }

 private:
  constexpr Kernel(const char* name, bool is_fused) : KernelRow(name, is_fused) {
    // The meta backend computes shapes only, and shapes are computed above this table: every kernel is nothing there.
    column_[meta.backend] = [](Args...) {};
  }
  template <class Argument>
  void check(Device device, const Argument& argument) const {
    if constexpr (std::is_same_v<Argument, View>) check_type(device, argument);
  }
  void set_aside(Device device, bool aside) override {
    Function& from = (aside ? column_ : aside_)[device.backend];
    Function& to = (aside ? aside_ : column_)[device.backend];
    if (!from || to) return;
    // In this order, so that a call on another thread finds it in one of the two.
    std::atomic_ref(to).store(from, std::memory_order_release);
    std::atomic_ref(from).store(nullptr, std::memory_order_release);
  }
  static Function read(const Function& cell) {
    return std::atomic_ref(const_cast<Function&>(cell)).load(std::memory_order_acquire);
  }
  [[gnu::noinline]] void call_watched(Device device, Args... args) const {
    Function function = nullptr;
    while (!function) {  // while another thread begins to watch, or ends
      if (!has(device)) missing(device);
      function = read(aside_[device.backend]);
      if (!function) function = read(column_[device.backend]);
    }
    const WatchedCall call(device);
    if (!call.watcher()) return function(args...);
    std::array<View, (size_t{0} + ... + size_t{std::is_same_v<Args, View>})> views;
    size_t count = 0;
    const auto take = [&](const auto& argument) {
      if constexpr (std::is_same_v<decltype(argument), const View&>) views[count++] = argument;
    };
    (take(args), ...);
    RowWatcher& watcher = *call.watcher();
    watcher.before(*this, views);
    function(args...);
    watcher.after(*this, views);
    constexpr bool reports = (std::is_same_v<Args, void*> || ...);
    if (watcher.keeps_calls()) watcher.keep({[function, args...] { function(args...); }, reports});
  }

  std::array<Function, max_backends> column_{};
  std::array<Function, max_backends> aside_{};   ///< the functions of watched rows
  std::array<Function, max_backends> hidden_{};  ///< and of those left out
};

/// `const Install here{kernels::softmax, cpu, softmax};` at namespace scope fills a cell at start-up.
struct Install {
  template <class Signature>
  Install(Kernel<Signature>& kernel, Device device, typename Kernel<Signature>::Function function,
          FloatTypes floats = all_floats) {
    kernel.install(device, function, floats);
  }
};

}  // namespace cinta
