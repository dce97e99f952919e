// The message for types that the CPU's kernels do not take.
#include "cinta/backends/cpu/check.h"

namespace cinta {

void require_narrow(const View& view) {
  require<DtypeError>(!view || (is_floating(view.dtype) && view.dtype != Dtype::f64), "cpu", Where(),
                      "this kernel computes in 32 bits and takes f32 and narrower floating types, given ", view.dtype,
                      "; the device 'reference' computes in f64");
}

}  // namespace cinta
