// The list of rows, who watches them, and the messages of an empty cell and of a type that a cell does not take.
#include "cinta/backends/kernel.h"

#include <algorithm>
#include <mutex>
#include <thread>

namespace cinta {
namespace {
std::vector<KernelRow*>& table() {
  static std::vector<KernelRow*> rows;
  return rows;
}

struct Watch {
  std::atomic<RowWatcher*> watcher{nullptr};
  std::atomic<int> calls{0};
};
std::array<Watch, max_backends> watches;
thread_local std::array<int, max_backends> own_calls{};
}  // namespace

const std::vector<KernelRow*>& kernel_table() { return table(); }

void watch_rows(Device device, RowWatcher* watcher) {
  static std::mutex changing;
  Watch& watch = watches[device.backend];
  {
    const std::lock_guard lock(changing);
    require(!watcher || !watch.watcher || watch.watcher == watcher, "watch_rows", Where(), "one watcher at a time of ",
            device);
    watch.watcher = watcher;
    for (KernelRow* row : table()) row->set_aside(device, watcher != nullptr);
  }
  // Unlocked: a call that is waited for may send the watcher away, too.
  while (!watcher && watch.calls > own_calls[device.backend]) std::this_thread::yield();
}

RowWatcher* row_watcher(Device device) { return watches[device.backend].watcher; }

WatchedCall::WatchedCall(Device device) : device_(device) {
  ++watches[device.backend].calls;  // before the look for the watcher, who waits for calls after he has gone
  ++own_calls[device.backend];
  watcher_ = row_watcher(device);
}

WatchedCall::~WatchedCall() {
  --own_calls[device_.backend];
  --watches[device_.backend].calls;
}

void KernelRow::enter_in_table() {
  if (std::find(table().begin(), table().end(), this) == table().end()) table().push_back(this);
}

void describe(std::string& out, FloatTypes types) {
  const size_t before = out.size();
  for (Dtype dtype = Dtype::f64; is_floating(dtype); dtype = static_cast<Dtype>(static_cast<int>(dtype) + 1))
    if (types.has(dtype)) out += join(out.size() == before ? "" : ", ", dtype);
}

void KernelRow::check_type(Device device, const View& view) const {
  require<DtypeError>(!view || floats(device).has(view.dtype), name_, Where(), "on ", device,
                      " this kernel computes in ", floats(device), ", given ", view.dtype);
}

void KernelRow::missing(Device device) const {
  throw DeviceError(join("[", name_, "] this kernel is not implemented by backend ", device));
}

}  // namespace cinta
