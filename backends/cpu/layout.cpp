// How a loop nest is simplified.
#include "cinta/backends/cpu/layout.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace cinta {

Layout::Layout(std::initializer_list<View> views) {
  const View& first = *views.begin();
  std::array<int, max_rank> order{};
  int used = 0;
  for (int dim = 0; dim < first.rank(); ++dim) {
    count *= first.shape[dim];
    if (first.shape[dim] == 1) continue;
    const auto end = order.begin() + used++;
    *end = dim;
    std::rotate(std::upper_bound(order.begin(), end, dim,
                                 [&](int a, int b) { return std::abs(first.strides[a]) > std::abs(first.strides[b]); }),
                end, end + 1);
  }
  for (int i = 0; i < used; ++i) {
    const int dim = order[static_cast<size_t>(i)];
    const int64_t size = first.shape[dim];
    bool joins = rank > 0;
    int which = 0;
    for (const View& view : views) joins = joins && strides[which++][rank - 1] == view.strides[dim] * size;
    if (!joins) {
      ++rank;
      sizes.push_back(1);
      for (Shape& each : strides) each.push_back(0);
    }
    sizes[rank - 1] *= size;
    which = 0;
    for (const View& view : views) strides[which++][rank - 1] = view.strides[dim];
  }
  if (rank == 0) {
    rank = 1;
    sizes.push_back(1);
    for (Shape& each : strides) each.push_back(1);
  }
}

int64_t Layout::offset(int view, int64_t index) const {
  int64_t offset = 0;
  for (int dim = rank - 1; dim >= 0; --dim) {
    offset += index % sizes[dim] * strides[view][dim];
    index /= sizes[dim];
  }
  return offset;
}

int64_t row_offset(const View& view, int64_t row) {
  int64_t offset = 0;
  int dim = view.rank() - 2;
  for (; dim > 0; --dim) {
    offset += row % view.shape[dim] * view.strides[dim];
    row /= view.shape[dim];
  }
  return dim == 0 ? offset + row * view.strides[0] : 0;
}

}  // namespace cinta
