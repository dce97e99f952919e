// The list of rows, who watches them, and the message of an empty cell.
#include "cinta/backends/kernel.h"

#include <algorithm>

namespace cinta {
namespace {
std::vector<KernelRow*>& table() {
  static std::vector<KernelRow*> rows;
  return rows;
}
std::array<RowWatcher*, max_backends> watchers{};
}  // namespace

const std::vector<KernelRow*>& kernel_table() { return table(); }

void watch_rows(Device device, RowWatcher* watcher) {
  watchers[device.backend] = watcher;
  for (KernelRow* row : table()) row->set_aside(device, watcher != nullptr);
}

RowWatcher* row_watcher(Device device) { return watchers[device.backend]; }

void KernelRow::enter_in_table() {
  if (std::find(table().begin(), table().end(), this) == table().end()) table().push_back(this);
}

void KernelRow::missing(Device device) const {
  throw DeviceError(join("[", name_, "] this kernel is not implemented by backend ", device));
}

}  // namespace cinta
