// The list of rows and the message of an empty cell.
#include "cinta/backends/kernel.h"

#include <algorithm>

namespace cinta {
namespace {
std::vector<const KernelRow*>& table() {
  static std::vector<const KernelRow*> rows;
  return rows;
}
}  // namespace

const std::vector<const KernelRow*>& kernel_table() { return table(); }

void KernelRow::enter_in_table() {
  if (std::find(table().begin(), table().end(), this) == table().end()) table().push_back(this);
}

void KernelRow::missing(Device device) const {
  throw DeviceError(join("[", name_, "] this kernel is not implemented by backend ", device));
}

}  // namespace cinta
