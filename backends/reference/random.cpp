// Random masks.
#include "cinta/backends/reference/dropout.h"

namespace cinta::oracle {
namespace {

void drop(View y, View y_too, View x, kernels::Dropout dropout) {
  const int64_t columns = x.size(-1);
  for (int64_t n = 0; n < x.numel(); ++n) {
    nth(y, n) = nth(x, n) * mask(dropout, n / columns, n % columns, columns);
    if (y_too) nth(y_too, n) = nth(y, n);
  }
}

const Install dropout{kernels::dropout, reference, drop};

}  // namespace
}  // namespace cinta::oracle
