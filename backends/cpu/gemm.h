// Our own matrix product: floats of at most 32 bits, any strides, accumulated in f32 in an order that depends on the
// product (sizes, strides, alignment, whether it is one of many) and the machine, never on the number of threads.
#pragma once
#include "cinta/core/dtype.h"

namespace cinta {

/// The least multiple of `multiple` that is no less than `value`.
constexpr int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Weight gradients of at least so many values go past the caches, unless the product that writes them reads them
/// again. BERT-base's, of 2.3 MB and more, and decoders' gained by it (see docs/experiments.md, Weight gradients);
/// those of an MLP are smaller, and their update finds them.
inline constexpr int64_t least_streamed = 1 << 19;

/// A matrix in memory: element (i, j) lies at data + i * row + j * column.
struct Matrix {
  void* data = nullptr;
  int64_t row = 0, column = 1;  ///< strides in elements
  Dtype dtype = Dtype::f32;

  /// Whether steps of `stride` elements lie a multiple of 4 KiB apart, and so push each other out of a first-level
  /// cache.
  bool collides(int64_t stride) const { return stride * size_of(dtype) % 4096 == 0; }
  /// Whether every row begins where a line of memory does.
  bool whole_lines() const { return reinterpret_cast<uintptr_t>(data) % 64 == 0 && row * size_of(dtype) % 64 == 0; }
  void* at(int64_t i, int64_t j) const { return static_cast<char*>(data) + (i * row + j * column) * size_of(dtype); }
  Matrix transposed() const { return {data, column, row, dtype}; }
};

/// y[m,n] = alpha * a[m,k] b[k,n] + bias + beta * y. With beta 0 the old y is never read.
struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  Matrix y, a, b;
  Matrix bias;  ///< added to each element by its strides (0 repeats a value); data is null when there is none
  float alpha = 1, beta = 0;
  bool of_many = false;  ///< others, of a batch or parts of one sum, are done beside it, each by one thread
  /// Where the sums of a's rows over all of k go, too, or are added; null: nowhere. A kernel that adds nothing up
  /// refuses such a product, and gemm() is not given one.
  float* row_sums = nullptr;
  bool adds_row_sums = false;

  bool rows_collide() const { return a.collides(a.row); }

  /// The same numbers, but for row_sums: y^T = b^T a^T.
  Gemm transposed() const {
    return {n, m, k, y.transposed(), b.transposed(), a.transposed(), bias.transposed(), alpha, beta, of_many};
  }
};

/// The product of this machine's instruction set: on all threads, or, inside a parallel_for, on the calling one.
void gemm(const Gemm& product);

/// The same where it was measured to be faster than oneDNN's product; else false, with nothing done.
bool fast_gemm(const Gemm& product);

/// `gemm` as compiled for one instruction set; the highest that the machine has is used.
struct InstallGemm {
  InstallGemm(int level, void (*function)(const Gemm&));
};

/// A kernel for some products. It returns false, with nothing done, for a product that it does not take; then those of
/// lower levels are asked.
struct InstallSpecialGemm {
  InstallSpecialGemm(int level, bool (*function)(const Gemm&));
};

}  // namespace cinta
