// A long sum in two halves, side by side: two threads then read rows of their own, which are theirs in what is computed
// row by row. Where they share no cache, lines that both have read are slow to write.
#pragma once
#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/parallel.h"

namespace cinta {

/// Sums so long are halved: a step of BERT-tiny in f32, whose weights' gradients are sums over 2048 samples, takes 0.88
/// of its time where threads share no cache, and 0.99 where they do; of BERT-base, over 1024, it would take 1.007.
/// Not where a second result would ask for too much memory, nor in a batch, where one thread does the whole.
inline bool is_halved(const Gemm& p) { return p.k >= 2048 && p.m * p.n <= 1 << 22 && !p.of_many; }

/// The halves of a product without bias whose result is f32 and lies by rows. `first` is even in length, not shorter
/// than `second`, and goes where the whole would; `second` goes to a matrix of its own, as its row sums do.
struct Halves {
  explicit Halves(const Gemm& whole);
  /// Adds the second half, once both are done.
  void add_up() const;

  WorkspaceBlock rest;
  Gemm first, second;
};

}  // namespace cinta
