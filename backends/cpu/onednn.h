// oneDNN's matrix product, where it is built in.
#pragma once
#include "cinta/backends/cpu/gemm.h"

namespace cinta::onednn {

/// Does `product`, and `other` beside it if there is one, on all threads, or, inside a parallel_for, on the calling
/// one; the sums do not depend on their number. False, with nothing done, where oneDNN is absent, has only its slow
/// reference implementation for one of them, or is not to be asked: for other types, strides or factors. What it needs
/// for a kind of product, by its sizes, is made once and kept for good.
bool multiply(const Gemm& product, const Gemm* other = nullptr);

/// The same on the calling thread, in one piece.
bool multiply_whole(const Gemm& product);

/// Plans made so far: a kind of product that was seen before needs no further one.
int64_t plans_made();

}  // namespace cinta::onednn
