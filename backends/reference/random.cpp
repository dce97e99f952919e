// Random masks.
#include "cinta/backends/reference/dropout.h"

namespace cinta::oracle {
namespace {

void drop(View y, View y_too, View x, kernels::Dropout dropout) {
  const int64_t columns = x.size(-1);
  for (int64_t n = 0; n < x.numel(); ++n) {
    const double value = nth(x, n) * mask(dropout, n / columns, n % columns, columns);
    nth(y, n) = value;
    if (y_too) nth(y_too, n) = value;
  }
}

const Install dropout{kernels::dropout, reference, drop};

}  // namespace
}  // namespace cinta::oracle
