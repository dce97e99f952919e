// How a reference kernel reports an index outside its table.
#pragma once
#include "cinta/core/context.h"

namespace cinta::oracle {

/// True iff 0 <= index < limit; otherwise the first such index is written down.
inline bool inside(int64_t index, int64_t limit, int64_t row, void* status) {
  if (index >= 0 && index < limit) return true;
  if (auto* report = static_cast<Status*>(status); report && report->kind == Status::fine)
    *report = {Status::index_out_of_range, row, index, limit};
  return false;
}

}  // namespace cinta::oracle
