// How one line installs a unary row of the reference.
#pragma once
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/reference/element.h"

namespace cinta::oracle {

/// A unary row from its formula f(x, scalars) and its slope, which is given what the row's backward reads: x or y.
template <class F, class Slope>
struct ReferenceUnary {
  ReferenceUnary(kernels::UnaryRow& row, F, Slope) {
    row.forward.install(reference, [](View y, View x, kernels::Scalars s) {
      for (const Index& i : Indices(y.shape)) at(y, i) = F{}(at(x, i), s);
    });
    row.backward.install(reference, [](View dx, View dy, View x_or_y, kernels::Scalars s) {
      for (const Index& i : Indices(dx.shape)) at(dx, i) = at(dy, i) * Slope{}(at(x_or_y, i), s);
    });
  }
};

}  // namespace cinta::oracle
