// Loops over strided views, simplified: what lies in one row is joined into one row.
#pragma once
#include <initializer_list>

#include "cinta/core/view.h"

namespace cinta {

/// The loop nest over several views of one shape. Dimensions of size 1 are dropped, the rest sorted so that the first
/// view's strides fall, and neighbours joined where every view permits. At least one dimension is left.
struct Layout {
  static constexpr int most = 4;  ///< views of one loop
  explicit Layout(std::initializer_list<View> views);

  int rank = 0;
  Shape sizes;
  Shape strides[most];  ///< of each view, in elements
  int64_t count = 1;    ///< product of the sizes

  int64_t row() const { return sizes[rank - 1]; }
  /// True iff the elements of `view` lie in the order of the loop, without gaps.
  bool linear(int view) const { return strides[view] == contiguous_strides(sizes); }
  /// Offset of the element with row-major number `index`.
  int64_t offset(int view, int64_t index) const;
};

/// Offset of the first element of row `row` of `view`, where all dimensions but the last together count the rows.
int64_t row_offset(const View& view, int64_t row);

}  // namespace cinta
