// What 8-bit tensor cores take: which pairs of formats, which sizes. One place for every backend; the CPU, which could
// multiply anything, keeps to it, so that what trains here trains there.
// Rules of compute capability 9.0: cuBLASLt, "8-bit floating point data types (FP8) usage".
#pragma once
#include <cstdint>

#include "cinta/core/dtype.h"

namespace cinta {

/// y[m,n] = a[m,k] b[n,k]^T in 8-bit formats, with a scale for a whole operand or (by_blocks) for parts of it.
struct NarrowProduct {
  Dtype a = Dtype::f8e4m3, b = Dtype::f8e4m3;
  int64_t m = 0, n = 0, k = 0;
  bool by_blocks = false;
};

/// True iff tensor cores multiply these formats: not f8e5m2 by itself, and none of one family by the other.
bool has_product(Dtype a, Dtype b);
/// Each size is a multiple of this.
int64_t size_step(const NarrowProduct& product);
/// The same with sizes rounded up to what the hardware takes: zeros behind the operands change no number.
NarrowProduct padded(NarrowProduct product);
/// Throws ShapeError for sizes that padded() would change, DtypeError for formats that do not go together.
void check_product(const NarrowProduct& product, const char* op, Where where);

}  // namespace cinta
