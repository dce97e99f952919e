// oneDNN's matrix product, where it is built in.
#pragma once
#include "cinta/backends/cpu/gemm.h"
#include "cinta/core/tensor.h"

namespace cinta::onednn {

/// Does `product` on all threads, or, inside a parallel_for, on the calling one; the sums do not depend on their
/// number. False, with nothing done, where oneDNN is absent or has only its slow reference implementation for this
/// product.
bool multiply(const Gemm& product);

/// f32[parts, m, n], part i of a b summed over terms i * length and up to `length` more: each a task of its own for
/// some thread. No tensor where the other returns false.
Tensor multiply_parts(const Gemm& product, int64_t length);

/// Plans made so far: a kind of product that was seen before needs no further one.
int64_t plans_made();

}  // namespace cinta::onednn
