// The list of rows, who watches them, and the messages of an empty cell and of a type that a cell does not take.
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
