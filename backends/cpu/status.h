// How a kernel of the CPU reports an index outside its table.
#pragma once
#include "cinta/core/context.h"

namespace cinta {

/// True iff all of 0 <= index(r) < limit or allowed(r), for r < count. Otherwise the first bad row is written down,
/// unless an earlier report is there. Runs on the calling thread: it reads count indices, the kernel far more.
template <class Index, class Allowed>
bool check_indices(void* status, int64_t count, int64_t limit, Index index, Allowed allowed) {
  for (int64_t r = 0; r < count; ++r)
    if (const int64_t i = index(r); (i < 0 || i >= limit) && !allowed(i)) {
      if (auto* report = static_cast<Status*>(status); report && report->kind == Status::fine)
        *report = {Status::index_out_of_range, r, i, limit};
      return false;
    }
  return true;
}

}  // namespace cinta
